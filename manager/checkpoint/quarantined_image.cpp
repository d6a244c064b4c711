#include "manager/checkpoint/quarantined_image.h"

#include <utility>

#include "ipc/log.h"
#include "manager/support/found_damage.h"

namespace pando::manager {

namespace {

void tell_loss(const std::string& path, const Error& why) {
  log::error(
      "zone_snapshots_lost", "image", path, "reason", why.text, "text",
      "snapshots of zones, if any, were in the image alone; zones come from files and journal");
}

/// Versions of one lineage, with one journal, follow each other. So an image that is not ahead of
/// the dump has a version from which the dump's version came. The same lineage with another journal
/// is that of a copy.
bool is_before(const ImageIndex& image, const zone::DumpHeader& dump) noexcept {
  return image.state.lineage == dump.lineage && image.owner == dump.owner &&
         image.state.version <= dump.version && image.state.journal_position <= dump.position;
}

}  // namespace

void QuarantinedImage::mark_unused(const Error& why) {
  log::error("image_not_used", "reason", why.text);
  // Of a whole image no file is missing.
  if (why.code == Errc::kCorrupt || why.code == Errc::kNotFound) found_damage().add(why.text);
  why_ = why;
}

void QuarantinedImage::lose(Image& image) {
  if (!why_) return;
  tell_loss(image.path(), *why_);
  if (why_->code == Errc::kCorrupt) {
    why_.reset();
    if (auto removed = image.remove(); !removed)
      log::error("image_not_removed", "path", image.path(), "reason", removed.error().text);
  }
  quarantine_if_good(image);
}

Status QuarantinedImage::clear_for_dump(Image& image, const zone::DumpHeader& dump) {
  if (!why_ && image.index() == nullptr) return {};  // no image
  Status gone;
  if (is_nothing_to_keep(image, dump)) {
    why_.reset();
    log::info("image_removed", "path", image.path(), "reason", "a dump takes its place");
    gone = image.remove();
  } else {
    if (!why_)
      mark_unused({Errc::kDenied, fmt::format("{}: the dump of another journal has taken its place",
                                              image.path())});
    gone = quarantine(image, *std::exchange(why_, std::nullopt));
  }
  if (gone) return {};
  return fail(Errc::kDenied,
              "{}: cannot be removed or quarantined for the dump of another journal: {}",
              image.path(), gone.error().text);
}

bool QuarantinedImage::is_nothing_to_keep(const Image& image, const zone::DumpHeader& dump) const {
  if (why_ ? !Image::may_be_good(why_->code) : image.is_of_no_update()) return true;
  const auto head = image.head();
  return head && is_before(*head, dump);
}

Status QuarantinedImage::quarantine(Image& image, const Error& why) {
  Status renamed = image.quarantine();
  may_write_ = renamed.has_value();
  unused_ = fmt::format("{}: {}", may_write_ ? image.quarantine_path() : image.path(), why.text);
  if (renamed) {
    quarantined_ = unused_;
    log::error("image_quarantined", "path", image.quarantine_path(), "reason", why.text);
  } else {
    log::error("image_not_written", "path", image.path(), "reason", renamed.error().text);
  }
  return renamed;
}

void QuarantinedImage::quarantine_if_good(Image& image) {
  const auto why = std::exchange(why_, std::nullopt);
  if (why && Image::may_be_good(why->code)) static_cast<void>(quarantine(image, *why).has_value());
  if (quarantined_.empty() && image.has_quarantined())
    quarantined_ = fmt::format("{}: by an earlier start", image.quarantine_path());
}

Status QuarantinedImage::dispose(Files& files, const std::string& path, const Error& why) {
  tell_loss(path, why);
  Image image(files, {.path = path});
  if (!Image::may_be_good(why.code)) return image.remove();
  auto renamed = image.quarantine();
  if (renamed) log::error("image_quarantined", "path", image.quarantine_path(), "reason", why.text);
  return renamed;
}

}  // namespace pando::manager
