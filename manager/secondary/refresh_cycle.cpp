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

void RefreshCycle::begin_with(const Endpoint& primary) {
  if (under_way()) return;
  for (std::size_t i = 0; i < primaries_.size(); ++i)
    if (primaries_[i].endpoint == primary) first_ = i;
}

void RefreshCycle::give_up() noexcept {
  first_ = asked_ = 0;
  replace_ = is_replacing();
  running_ = confirmed_ = whole_zone_ = replacing_ = false;
}

std::optional<RefreshCycle::Wish> RefreshCycle::end(bool is_news) {
  first_ = 0;
  asked_ = 0;
  confirmed_ = whole_zone_ = replacing_ = false;
  std::optional<Wish> wish = std::exchange(again_, std::nullopt);
  if (!is_news) hint_.reset();
  if (!hint_) return wish;
  first_ = hint_->primary;
  // A serial is stored only if the key of its primary, if any, has signed the NOTIFY.
  const bool is_signed = primaries_[first_].key.has_value();
  return Wish{!is_signed && (!wish || wish->paced)};
}

bool RefreshCycle::put_off(Wish wish) {
  if (!under_way()) return false;
  again_ = Wish{wish.paced && (!again_ || again_->paced)};
  return true;
}

bool RefreshCycle::note_behind(const Endpoint& primary, bool is_behind) {
  if (is_behind) return behind_.insert(primary).second;
  behind_.erase(primary);
  return false;
}

bool RefreshCycle::is_doubt(const NotifyRequest& request, dns::Serial ours) const {
  if (sender(request) == nullptr) return false;
  const bool is_known = std::any_of(behind_.begin(), behind_.end(), [&](const Endpoint& primary) {
    return primary.address.resolved() == request.client.address;
  });
  return is_known == (*request.serial == ours);
}

const Primary* RefreshCycle::sender(const NotifyRequest& request) const {
  const auto found = std::find_if(primaries_.begin(), primaries_.end(), [&](const Primary& one) {
    return one.endpoint.address.resolved() == request.client.address;
  });
  return found == primaries_.end() ? nullptr : &*found;
}

std::optional<RefreshCycle::Wish> RefreshCycle::on_notify(const NotifyRequest& request) {
  const Primary* speaker = sender(request);
  if (speaker == nullptr) return Wish{true};
  const bool is_signed = speaker->key && request.key && *speaker->key == *request.key;
  // The notifying primary is asked first, since that primary has the new version.
  const auto place = static_cast<std::size_t>(speaker - primaries_.data());
  if (!under_way()) first_ = place;
  // The serial of a NOTIFY without the primary's signature is no reason for a connection: the SOA
  // record is asked for first.
  if (!request.serial || (speaker->key && !is_signed)) return Wish{!is_signed};
  if (!hint_ || request.serial->ahead_of(hint_->serial)) hint_ = Hint{*request.serial, place};
  return under_way() ? std::nullopt : std::optional(Wish{!is_signed});
}

}  // namespace pando::manager
