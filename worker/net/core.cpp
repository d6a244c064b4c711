#include "worker/net/core.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/files/file_status.h"
#include "worker/tap/taps.h"

namespace pando::worker {

namespace {

std::uint64_t monotonic_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

Core::Core(ManagerLink& link) : link_(link), keys_(std::make_shared<KeySet>()) {}

std::uint64_t Core::coarse_now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  return static_cast<std::uint64_t>(time.tv_sec);
}

Core::FileId Core::id_of(int fd) {
  struct stat status{};
  if (!file_status(fd, status)) return {};
  return {status.st_dev, status.st_ino};
}

bool Core::is_attached_to(const shm::SlotLoan& files) const {
  return attached() && store_id_ == id_of(files.store.get()) && slot_id_ == id_of(files.slot.get());
}

Status Core::attach(shm::SlotLoan files, std::uint64_t layout, std::uint32_t slot, Fd image) {
  const FileId store_id = id_of(files.store.get());
  const FileId slot_id = id_of(files.slot.get());
  responder_.reset();
  reader_.reset();
  auto reader =
      shm::Reader::attach(std::move(files), layout, slot, shm::ImageFile{std::move(image)});
  if (!reader) return pass(reader);
  reader_ = std::make_shared<shm::Reader>(std::move(*reader));
  store_id_ = store_id;
  slot_id_ = slot_id;
  shm::SlotPage& page = reader_->slot_page();
  counting_.emplace(page.counters, page.transfers);
  responder_ = std::make_unique<Responder>(
      page.counters,
      [reader_raw = reader_.get()](std::uint32_t index) { return reader_raw->side(index); },
      page.transfers);
  responder_->set_keys(keys_);
  return {};
}

void Core::set_keys(std::shared_ptr<const KeySet> keys) {
  keys_ = std::move(keys);
  if (responder_) responder_->set_keys(keys_);
}

/// Pins the current version and adopts its settings.
void Core::pin() {
  view_ = reader_->pin();
  responder_->begin(zone::StoreView(view_.window, view_.root, view_.version), coarse_now(),
                    link_.takes_requests());
  const zone::ServerSettings& settings = responder_->settings();
  tcp_limits_ = {settings.tcp_clients, settings.tcp_idle_ms};
  tls_limits_ = {settings.tls_clients, settings.tls_idle_ms};
}

void Core::look_at_settings() {
  pin();
  reader_->unpin();
}

bool Core::is_proxy(const IpAddress& address) const noexcept {
  const auto& proxies = responder_->settings().proxies;
  return std::any_of(proxies.begin(), proxies.end(),
                     [&](const IpPrefix& prefix) { return prefix.contains(address); });
}

std::optional<Exchange> Core::tapped(ByteView message, const Client& client,
                                     const timespec& received) const {
  Exchange exchange{client, received, {}};
  if (taps_ == nullptr || !taps_->take(message, exchange)) return std::nullopt;
  if (!taps_->wants_end(exchange, message)) return exchange;
  if (const zone::ZoneView zone = responder_->requested_zone()) {
    const dns::NameView apex = zone.apex();
    exchange.zone.assign(apex.data(), apex.data() + apex.size());
  }
  return exchange;
}

void Core::begin() {
  if (unsent_ == 0) begun_ns_ = monotonic_ns();
  pin();
  counting_->add(ipc::Counter::kBatches);
}

void Core::end() noexcept { reader_->unpin(); }

void Core::sent() noexcept {
  const std::size_t responses = std::exchange(unsent_, 0);
  if (responses > 0) counting_->latency((monotonic_ns() - begun_ns_) / 1000, responses);
}

}  // namespace pando::worker
