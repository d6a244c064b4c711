#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "manager/checkpoint/image.h"
#include "zone/dump/dump_format.h"

namespace pando::manager {

/// The fate of an image that a start did not use. A damaged image, or one of another layout or
/// version, is replaced by the first checkpoint.
///
/// An image that may be good is quarantined: renamed, out of the checkpoints' way. Reasons are a
/// lack of memory, a disk that fails, or a copy that belongs elsewhere. There is one place for such
/// images: beside an earlier one, the new image stays where it is, and no checkpoint is written.
class QuarantinedImage {
 public:
  /// Logs that the image is not used. quarantine_if_good() decides about the image, once there is
  /// another store.
  void mark_unused(const Error& why);
  /// Withdraws mark_unused(): a later try of the same start could use the image.
  void mark_used() noexcept { why_.reset(); }
  /// Logs that the data of the image alone are in no store now, and does the same as
  /// quarantine_if_good(). A damaged image is removed, so that nobody takes it for an image of the
  /// new store.
  void lose(Image& image);
  /// Removes or quarantines the image, before a dump of another journal becomes ours: no later
  /// start may take the image for one of our data. Removed are an image without any update, one
  /// with nothing beyond the dump, and one that no build can use. After an error, which names the
  /// image and is never kExists, the image is still there.
  Status clear_for_dump(Image& image, const zone::DumpHeader& dump);
  /// Quarantines an unused image that may be good. To be called before the first checkpoint;
  /// without an unused image, or when called again, nothing is renamed.
  void quarantine_if_good(Image& image);
  /// Removes or quarantines an image that was served already, at the end of the process: no later
  /// start may use the image. After an error the image is still there.
  static Status dispose(Files& files, const std::string& path, const Error& why);
  /// False: the image must not be written.
  [[nodiscard]] bool may_write() const noexcept { return may_write_; }
  /// For people: path and reason of the image that this start did not use. Empty: there is none, or
  /// the image was damaged. Once there is a new image the old one is no fault any more, unless
  /// may_write() is false.
  [[nodiscard]] const std::string& unused() const noexcept { return unused_; }
  /// Path and reason of a quarantined image, of this start or an earlier one; empty without one.
  [[nodiscard]] const std::string& quarantined() const noexcept { return quarantined_; }

 private:
  [[nodiscard]] bool is_nothing_to_keep(const Image& image, const zone::DumpHeader& dump) const;
  Status quarantine(Image& image, const Error& why);

  std::optional<Error> why_;  // of an unused image whose fate is open
  bool may_write_ = true;
  std::string unused_;
  std::string quarantined_;
};

}  // namespace pando::manager
