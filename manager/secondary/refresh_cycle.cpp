#include "manager/secondary/refresh_cycle.h"

#include <algorithm>

namespace pando::manager {

std::optional<dns::Serial> RefreshCycle::notified_serial() const {
  return hint_ ? std::optional(hint_->serial) : std::nullopt;
}

RefreshCycle::Request RefreshCycle::begin_attempt() {
  running_ = true;
  if (asked_ == 0 && std::exchange(replace_, false)) replacing_ = true;
  Request request;
  request.whole_zone = whole_zone_ || replacing_;
  request.any_serial = replacing_;
  if (!hint_ || hint_->primary != turn()) return request;
  request.notified = hint_->serial;
  if (!whole_zone_) hint_.reset();
  return request;
}

bool RefreshCycle::ask_next() {
  whole_zone_ = false;
  return ++asked_ < primaries_.size();
}

std::optional<RefreshCycle::Wish> RefreshCycle::end(bool is_news) {
  first_ = 0;
  asked_ = 0;
  confirmed_ = whole_zone_ = replacing_ = false;
  std::optional<Wish> wish = std::exchange(again_, std::nullopt);
  if (!is_news) hint_.reset();
  if (!hint_) return wish;
  first_ = hint_->primary;
  // A serial is kept only if the key of its primary, if any, has signed the NOTIFY.
  const bool is_signed = primaries_[first_].key.has_value();
  return Wish{!is_signed && (!wish || wish->paced)};
}

bool RefreshCycle::put_off(Wish wish) {
  if (!under_way()) return false;
  again_ = Wish{wish.paced && (!again_ || again_->paced)};
  return true;
}

std::optional<RefreshCycle::Wish> RefreshCycle::on_notify(const NotifyRequest& request) {
  const auto speaker = std::find_if(primaries_.begin(), primaries_.end(), [&](const Primary& one) {
    return one.endpoint.address.resolved() == request.client.address;
  });
  if (speaker == primaries_.end()) return Wish{true};
  const bool is_signed = speaker->key && request.key && *speaker->key == *request.key;
  // The notifying primary is asked first, since that primary has the new version.
  const auto place = static_cast<std::size_t>(speaker - primaries_.begin());
  if (!under_way()) first_ = place;
  // The serial of a NOTIFY without the primary's signature is no reason for a connection: the SOA
  // record is asked for first.
  if (!request.serial || (speaker->key && !is_signed)) return Wish{!is_signed};
  if (!hint_ || request.serial->ahead_of(hint_->serial)) hint_ = Hint{*request.serial, place};
  return under_way() ? std::nullopt : std::optional(Wish{!is_signed});
}

}  // namespace pando::manager
