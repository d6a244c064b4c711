#include "manager/refused_image.h"

#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {

void tell_loss(const std::string& path, const Error& why) {
  log::error(
      "zone_snapshots_lost", "image", path, "reason", why.text, "text",
      "snapshots of zones, if any, were in the image alone; zones come from files and journal");
}

}  // namespace

void RefusedImage::refuse(const Error& why) {
  log::error("image_not_used", "reason", why.text);
  why_ = why;
}

void RefusedImage::lose(Image& image) {
  if (!why_) return;
  tell_loss(image.path(), *why_);
  if (why_->code == Errc::kCorrupt) {
    why_.reset();
    if (auto removed = image.remove(); !removed)
      log::error("image_not_removed", "path", image.path(), "reason", removed.error().text);
  }
  keep(image);
}

Status RefusedImage::give_way(Image& image) {
  if (!why_ && image.index() == nullptr) return {};  // there is none
  if (why_ ? !Image::may_be_good(why_->code) : image.is_of_no_update()) {
    why_.reset();
    log::info("image_removed", "path", image.path(), "reason", "a dump takes its place");
    return image.remove();
  }
  if (!why_)
    refuse({Errc::kDenied,
            fmt::format("{}: the dump of another journal has taken its place", image.path())});
  keep(image);
  return may_write_ ? Status() : Status(fail(Errc::kExists, "{} is in the way", text_));
}

void RefusedImage::keep(Image& image) {
  const auto why = std::exchange(why_, std::nullopt);
  if (why && Image::may_be_good(why->code)) {
    const auto kept = image.set_aside();
    may_write_ = kept.has_value();
    text_ = fmt::format("{}: {}", may_write_ ? image.refused_path() : image.path(), why->text);
    if (kept) {
      kept_ = text_;
      log::error("image_set_aside", "path", image.refused_path(), "reason", why->text);
    } else {
      log::error("image_not_written", "path", image.path(), "reason", kept.error().text);
    }
  }
  if (kept_.empty() && image.has_refused())
    kept_ = fmt::format("{}: by an earlier start", image.refused_path());
}

Status RefusedImage::leave(Files& files, const std::string& path, const Error& why) {
  tell_loss(path, why);
  Image image(files, {.path = path});
  if (!Image::may_be_good(why.code)) return image.remove();
  auto kept = image.set_aside();
  if (kept) log::error("image_set_aside", "path", image.refused_path(), "reason", why.text);
  return kept;
}

}  // namespace pando::manager
