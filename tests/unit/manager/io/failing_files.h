#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager::testing {

/// The file system's files, of which chosen calls fail: exports are looked at by their names.
class FailingFiles final : public Files {
 public:
  using Call = FakeDisk::Call;
  using Fault = std::function<Status(Call, const std::string&)>;
  Fault fail = [](Call, const std::string&) { return Status(); };

  Result<std::unique_ptr<StoreFile>> open(const std::string& path, OpenMode mode) override {
    if (auto asked = fail(Call::kOpen, path); !asked) return pass(asked);
    auto file = native_files().open(path, mode);
    if (!file) return file;
    return std::unique_ptr<StoreFile>(std::make_unique<Handle>(*this, path, std::move(*file)));
  }
  Status rename(const std::string& from, const std::string& to) override {
    const Status asked = fail(Call::kRename, from);
    return asked ? native_files().rename(from, to) : asked;
  }
  Status remove(const std::string& path) override {
    const Status asked = fail(Call::kRemove, path);
    return asked ? native_files().remove(path) : asked;
  }
  Status sync_directory(const std::string& directory) override {
    const Status asked = fail(Call::kSyncDirectory, directory);
    return asked ? native_files().sync_directory(directory) : asked;
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (auto asked = fail(Call::kList, directory); !asked) return pass(asked);
    return native_files().list(directory);
  }
  Status make_directory(const std::string& directory) override {
    return native_files().make_directory(directory);
  }

 private:
  class Handle final : public StoreFile {
   public:
    Handle(FailingFiles& files, std::string path, std::unique_ptr<StoreFile> file)
        : files_(files), path_(std::move(path)), file_(std::move(file)) {}
    /// One that fails has written its first half.
    Status write_at(std::uint64_t offset, ByteView bytes) override {
      const Status asked = files_.fail(Call::kWrite, path_);
      const Status written = file_->write_at(offset, asked ? bytes : bytes.first(bytes.size() / 2));
      return asked ? written : asked;
    }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
      if (auto asked = files_.fail(Call::kRead, path_); !asked) return pass(asked);
      return file_->read_at(offset, out);
    }
    Status sync() override {
      const Status asked = files_.fail(Call::kSync, path_);
      return asked ? file_->sync() : asked;
    }
    Status preallocate(std::uint64_t bytes) override { return file_->preallocate(bytes); }
    Status truncate(std::uint64_t bytes) override { return file_->truncate(bytes); }
    Result<std::uint64_t> size() override { return file_->size(); }

   private:
    FailingFiles& files_;
    std::string path_;
    std::unique_ptr<StoreFile> file_;
  };
};

}  // namespace pando::manager::testing
