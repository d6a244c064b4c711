#pragma once

#include <algorithm>

#include "manager/io/store_file.h"

namespace pando::manager {

/// A large file that is written front to back and synced as it grows. A single sync at the end
/// would send all pages to the disk together. A sync of the journal would then wait for all of
/// them.
class ThrottledFile final : public StoreFile {
 public:
  /// Limit of written bytes of one file that the kernel may hold back.
  static constexpr std::uint64_t kUnsyncedBytes = std::uint64_t{4} << 20;

  /// `file` outlives the object.
  explicit ThrottledFile(StoreFile& file) noexcept : file_(file) {}

  /// Errors are those of sync(), too; after such an error the file is lost.
  Status write_at(std::uint64_t offset, ByteView bytes) override {
    while (!bytes.empty()) {
      const ByteView part = bytes.first(std::min<std::size_t>(bytes.size(), kUnsyncedBytes));
      if (auto written = file_.write_at(offset, part); !written) return written;
      offset += part.size();
      bytes = bytes.subspan(part.size());
      unsynced_ += part.size();
      if (unsynced_ >= kUnsyncedBytes)
        if (auto synced = sync(); !synced) return synced;
    }
    return {};
  }
  Status sync() override {
    unsynced_ = 0;
    return file_.sync();
  }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return file_.read_at(offset, out);
  }
  Status preallocate(std::uint64_t bytes) override { return file_.preallocate(bytes); }
  Status truncate(std::uint64_t bytes) override { return file_.truncate(bytes); }
  Result<std::uint64_t> size() override { return file_.size(); }

 private:
  StoreFile& file_;
  std::uint64_t unsynced_ = 0;
};

}  // namespace pando::manager
