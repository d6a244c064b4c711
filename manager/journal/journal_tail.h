#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "manager/io/store_file.h"

namespace pando::manager {

/// What the process before had in the journal's last segment. It may be in the page cache only, so
/// that a crash of the host takes it away, and what stands behind it would not fit any more: until
/// it is secured nothing is appended.
///
/// Belongs to the thread that appends; is_secured() may be called by any.
class JournalTail {
 public:
  JournalTail(Files& disk, std::string directory) : disk_(disk), directory_(std::move(directory)) {}

  /// `bytes`: all of `file` that is to be kept.
  void found(std::string file, Bytes bytes);
  /// Copies what was found to fresh blocks, and syncs them; nothing was: does nothing. After an
  /// error, which names the file, the next call tries again.
  Status secure();
  /// Something else that is durable has it, or nothing was found.
  void forget() noexcept;
  /// Whether that is the file which is not secured.
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
  // No tail. Nothing else is read by it, and who sees it late only waits; sequentially consistent
  // as it is asked for rarely.
  std::atomic<bool> secured_{true};
};

}  // namespace pando::manager
