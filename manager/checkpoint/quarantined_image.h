#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "manager/checkpoint/image.h"
#include "zone/dump/dump_format.h"

namespace pando::manager {

/// An image that a start could not use. A damaged image is replaced by the first checkpoint.
///
/// An image that may be good is quarantined: renamed, out of the checkpoints' way. Reasons are a
/// lack of memory, a disk that fails, or a copy that belongs elsewhere. There is one place for such
/// images: beside an earlier one, the new image stays where it is, and no checkpoint is written.
class QuarantinedImage {
 public:
  /// Logs the refusal. keep() decides about the image, once there is another store.
  void refuse(const Error& why);
  /// Withdraws the refusal: a later try of the same start could use the image.
  void forgive() noexcept { why_.reset(); }
  /// Logs that the data of the image alone are in no store now, and does the same as keep(). A
  /// damaged image is removed, so that nobody takes it for an image of the new store.
  void lose(Image& image);
  /// Makes way for a dump of another journal, before the dump becomes ours: no later start may take
  /// the image for one of our data. Removed are an image without any update, one with nothing
  /// beyond the dump, and one that no build can use. Any other image is quarantined. After an
  /// error, which names the image and is never kExists, the image is still there.
  Status give_way(Image& image, const zone::DumpHeader& dump);
  /// Quarantines a refused image that may be good. To be called before the first checkpoint;
  /// without a refused image, or when called again, nothing is renamed.
  void keep(Image& image);
  /// Removes or quarantines an image that was served already, at the end of the process: no later
  /// start may use the image. After an error the image is still there.
  static Status leave(Files& files, const std::string& path, const Error& why);
  /// False: the image must not be written.
  [[nodiscard]] bool may_write() const noexcept { return may_write_; }
  /// For people: path and reason of the image that this start refused. Empty: no image was refused,
  /// or the image was damaged. Once there is a new image the refusal is no fault any more, unless
  /// may_write() is false.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Path and reason of a quarantined image, of this start or an earlier one; empty without one.
  [[nodiscard]] const std::string& kept() const noexcept { return kept_; }

 private:
  [[nodiscard]] bool is_nothing_to_keep(const Image& image, const zone::DumpHeader& dump) const;
  Status set_aside(Image& image, const Error& why);

  std::optional<Error> why_;  // of a refused image that keep() has not seen
  bool may_write_ = true;
  std::string text_;
  std::string kept_;
};

}  // namespace pando::manager
