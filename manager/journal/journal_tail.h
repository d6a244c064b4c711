#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "manager/io/store_file.h"

namespace pando::manager {

/// Records of an earlier process in the journal's last segment. The records may be in the page
/// cache only, so a host crash could remove them, and later records would not fit any more. Nothing
/// is appended until the tail is secured.
///
/// Belongs to the thread that appends; is_secured() may be called by any.
class JournalTail {
 public:
  JournalTail(Files& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

  /// Keeps `bytes`, the valid part of `file`, as the tail.
  void found(std::string file, Bytes bytes);
  /// Copies the tail, if any, to fresh blocks and syncs them. An error names the file, and the next
  /// call tries again.
  Status secure();
  /// Drops the tail: other durable data contain it, or there is none.
  void forget() noexcept;
  /// Whether `file` holds the unsecured tail.
  [[nodiscard]] bool is_in(std::string_view file) const noexcept {
    return tail_ && tail_->file == file;
  }
  [[nodiscard]] bool is_secured() const noexcept { return secured_; }

 private:
  struct Tail {
    std::string file;
    Bytes bytes;
  };
  [[nodiscard]] Status rewrite(const Tail& from) const;

  Files& disk_;
  std::string directory_;
  std::optional<Tail> tail_;
  // True without a tail. No other data are published through this flag, and a reader that sees a
  // late value only waits. Sequentially consistent, since reads are rare.
  std::atomic<bool> secured_{true};
};

}  // namespace pando::manager
