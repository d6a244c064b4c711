#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "manager/image.h"

namespace pando::manager {

/// An image that a start had no use for. A damaged one is replaced by the first checkpoint. One
/// that may be good (no memory for it today, a disk that fails, a copy that belongs elsewhere) is
/// put where no checkpoint comes, once: a second one stays where it is, and none is written.
class RefusedImage {
 public:
  /// Logs it. What happens to the image is decided by keep(), when there is another store.
  void refuse(const Error& why);
  /// What the image alone had is in no store now: logs that, and does what keep() does.
  void lose(Image& image);
  /// Before the first checkpoint, and without effect when nothing was refused or it is done.
  void keep(Image& image);
  /// The same for an image that was served already, at the end of the process: no later start uses
  /// it. After an error it is still there.
  static Status leave(Files& files, const std::string& path, const Error& why);
  /// False: the image must not be written.
  [[nodiscard]] bool may_write() const noexcept { return may_write_; }
  /// For people: where there is one, and why. Empty: nowhere.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::optional<Error> why_;  // of one that keep() has not seen
  bool may_write_ = true;
  std::string text_;
};

}  // namespace pando::manager
