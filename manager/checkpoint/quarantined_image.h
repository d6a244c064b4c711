#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "manager/checkpoint/image.h"
#include "zone/dump/dump_format.h"

namespace pando::manager {

/// An image that a start had no use for. A damaged one is replaced by the first checkpoint. One
/// that may be good (no memory for it today, a disk that fails, a copy that belongs elsewhere) is
/// put where no checkpoint comes, once: a second one stays where it is, and none is written.
class QuarantinedImage {
 public:
  /// Logs it. What happens to the image is decided by keep(), when there is another store.
  void refuse(const Error& why);
  /// A later try of the same start could use it.
  void forgive() noexcept { why_.reset(); }
  /// What the image alone had is in no store now: logs that, and does what keep() does; a damaged
  /// one is removed, so that nobody takes it for an image of the store that is made instead.
  void lose(Image& image);
  /// A dump of another journal is about to become ours: no later start may take the image for one
  /// of what we have from then on. One without any update, one that has nothing that the dump has
  /// not, and one that no build of ours can use, is removed, any other one set aside. After an
  /// error, which names the image and is never kExists, it is still there.
  Status give_way(Image& image, const zone::DumpHeader& dump);
  /// Before the first checkpoint, and without effect when nothing was refused or it is done.
  void keep(Image& image);
  /// The same for an image that was served already, at the end of the process: no later start uses
  /// it. After an error it is still there.
  static Status leave(Files& files, const std::string& path, const Error& why);
  /// False: the image must not be written.
  [[nodiscard]] bool may_write() const noexcept { return may_write_; }
  /// For people: where the one is that this start refused, and why. Empty: none was refused, or it
  /// was damaged. Once there is an image again this is nothing to complain of, unless may_write()
  /// is false.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Where one is that was set aside, by this start or by an earlier one, and why. Empty: nowhere.
  [[nodiscard]] const std::string& kept() const noexcept { return kept_; }

 private:
  [[nodiscard]] bool is_nothing_to_keep(const Image& image, const zone::DumpHeader& dump) const;
  Status set_aside(Image& image, const Error& why);

  std::optional<Error> why_;  // of one that keep() has not seen
  bool may_write_ = true;
  std::string text_;
  std::string kept_;
};

}  // namespace pando::manager
