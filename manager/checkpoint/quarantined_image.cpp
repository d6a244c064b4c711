#include "manager/checkpoint/quarantined_image.h"

#include <utility>

#include "ipc/log.h"

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
  return dump.line != 0 && image.state.line == dump.line && image.owner == dump.owner &&
         image.state.version <= dump.version && image.state.journal_position <= dump.position;
}

}  // namespace

void QuarantinedImage::refuse(const Error& why) {
  log::error("image_not_used", "reason", why.text);
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
  keep(image);
}

Status QuarantinedImage::give_way(Image& image, const zone::DumpHeader& dump) {
  if (!why_ && image.index() == nullptr) return {};  // no image
  Status gone;
  if (is_nothing_to_keep(image, dump)) {
    why_.reset();
    log::info("image_removed", "path", image.path(), "reason", "a dump takes its place");
    gone = image.remove();
  } else {
    if (!why_)
      refuse({Errc::kDenied,
              fmt::format("{}: the dump of another journal has taken its place", image.path())});
    gone = set_aside(image, *std::exchange(why_, std::nullopt));
  }
  if (gone) return {};
  return fail(Errc::kDenied, "{}: cannot give way to the dump of another journal: {}", image.path(),
              gone.error().text);
}

bool QuarantinedImage::is_nothing_to_keep(const Image& image, const zone::DumpHeader& dump) const {
  if (why_ ? !Image::may_be_good(why_->code) : image.is_of_no_update()) return true;
  const auto head = image.head();
  return head && is_before(*head, dump);
}

Status QuarantinedImage::set_aside(Image& image, const Error& why) {
  Status kept = image.set_aside();
  may_write_ = kept.has_value();
  text_ = fmt::format("{}: {}", may_write_ ? image.refused_path() : image.path(), why.text);
  if (kept) {
    kept_ = text_;
    log::error("image_set_aside", "path", image.refused_path(), "reason", why.text);
  } else {
    log::error("image_not_written", "path", image.path(), "reason", kept.error().text);
  }
  return kept;
}

void QuarantinedImage::keep(Image& image) {
  const auto why = std::exchange(why_, std::nullopt);
  if (why && Image::may_be_good(why->code)) static_cast<void>(set_aside(image, *why).has_value());
  if (kept_.empty() && image.has_refused())
    kept_ = fmt::format("{}: by an earlier start", image.refused_path());
}

Status QuarantinedImage::leave(Files& files, const std::string& path, const Error& why) {
  tell_loss(path, why);
  Image image(files, {.path = path});
  if (!Image::may_be_good(why.code)) return image.remove();
  auto kept = image.set_aside();
  if (kept) log::error("image_set_aside", "path", image.refused_path(), "reason", why.text);
  return kept;
}

}  // namespace pando::manager
