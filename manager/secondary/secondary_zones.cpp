#include "manager/secondary/secondary_zones.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

namespace pando::manager {

namespace {

/// Secondaries (5 µs each) that are taken over per turn of the event loop.
constexpr std::size_t kSlice = 100;

/// Limit of zones remembered for a NOTIFY during the takeover of a configuration. Zones beyond the
/// limit depend on their timers.
constexpr std::size_t kMaxEarly = 10'000;

Primaries primaries_of(const config::Settings& settings, const std::vector<std::string>& remotes) {
  Primaries primaries;
  for (const std::string& name : remotes)
    if (const config::Remote* remote = settings.find_remote(name))
      for (const Endpoint& endpoint : remote->address) primaries.push_back({endpoint, remote->key});
  return primaries;
}

/// True if the configuration has `zone` as a secondary with the same primaries.
bool has(const config::Settings& settings, const dns::Name& zone, const Primaries& primaries) {
  const auto* options = settings.zones.options_of(zone);
  return options != nullptr && options->is_secondary() &&
         primaries_of(settings, options->primaries) == primaries;
}

}  // namespace

SecondaryZones::SecondaryZones(asio::io_context& commit_loop, Network& network,
                               Refresher& refresher, HasData has_data)
    : commit_loop_(commit_loop),
      network_(network),
      refresher_(refresher),
      has_data_(std::move(has_data)) {}

SecondaryZones::~SecondaryZones() { stop(); }

void SecondaryZones::stop() { *alive_ = false; }

void SecondaryZones::let_go(const RuntimePtr& next, std::function<void()> done) {
  let_go_ = taking_over_ = true;
  // The new generation ends a takeover in progress, which would add forgotten zones again.
  forget_slice(++generation_, next, std::nullopt, std::move(done));
}

void SecondaryZones::configure(const RuntimePtr& runtime) {
  runtime_ = runtime;
  refresher_.configure(runtime);
  let_go_ = false;
  taking_over_ = true;
  released_.clear();
  take_over_slice(++generation_, 0);
}

bool SecondaryZones::let_go_of(const std::vector<dns::Name>& zones, const RuntimePtr& next) {
  if (let_go_ || taking_over_) return false;
  released_.insert(zones.begin(), zones.end());
  for (const dns::Name& zone : zones)
    refresher_.forget_unless(zone, [&](const dns::Name& name, const Primaries& primaries) {
      return has(next->settings, name, primaries);
    });
  return true;
}

void SecondaryZones::configure_released(const RuntimePtr& runtime) {
  runtime_ = runtime;
  refresher_.configure(runtime);
  released_.clear();
  tell_network();
}

void SecondaryZones::put(const config::ZoneRef& zone) {
  refresher_.put(dns::Name(zone.name), primaries_of(runtime_->settings, zone.options->primaries));
}

std::optional<config::ZoneRef> SecondaryZones::secondary(const dns::Name& zone) const {
  const config::ZoneTable& zones = runtime_->settings.zones;
  const auto index = zones.find(zone);
  if (!index || !zones[*index].options->is_secondary()) return std::nullopt;
  return zones[*index];
}

void SecondaryZones::looked_at(const dns::Name& zone) {
  if (let_go_ || !*alive_ || released_.contains(zone)) return;
  const auto found = secondary(zone);
  if (!found) return;
  put(*found);
  if (taking_over_) return;  // taken_over() does the rest
  if (early_.erase(zone) > 0) refresher_.refresh_now(zone);
  refresher_.run_soon();
}

void SecondaryZones::take_over_slice(std::uint64_t generation, std::size_t from) {
  if (generation != generation_) return;
  const std::vector<std::uint32_t>& secondaries = runtime_->secondaries;
  const std::size_t end = std::min(from + kSlice, secondaries.size());
  for (std::size_t i = from; i < end; ++i) {
    const config::ZoneRef zone = runtime_->settings.zones[secondaries[i]];
    if (has_data_(dns::Name(zone.name))) put(zone);
  }
  if (end == secondaries.size())
    return forget_slice(generation, runtime_, std::nullopt, [this, generation] {
      if (generation == generation_) taken_over();
    });
  asio::post(commit_loop_, [this, generation, end, alive = alive_] {
    if (*alive) take_over_slice(generation, end);
  });
}

/// Forgets the zones that differ from the configuration. `done` is called in any case, even if
/// another takeover has started.
void SecondaryZones::forget_slice(std::uint64_t generation, const RuntimePtr& configuration,
                                  std::optional<dns::Name> after, std::function<void()> done) {
  if (generation != generation_) return done();
  const bool end = refresher_.forget_others(after, kSlice,
                                            [&](const dns::Name& zone, const Primaries& primaries) {
                                              return has(configuration->settings, zone, primaries);
                                            });
  if (end) return done();
  asio::post(commit_loop_, [this, generation, configuration, after = std::move(after),
                            done = std::move(done), alive = alive_]() mutable {
    if (*alive) forget_slice(generation, configuration, std::move(after), std::move(done));
  });
}

void SecondaryZones::taken_over() {
  taking_over_ = false;
  // Zones with a NOTIFY that came before their primaries were known.
  std::erase_if(early_, [this](const dns::Name& name) {
    // zones still to be loaded stay in the list
    return refresher_.refresh_now(name) || !secondary(name);
  });
  tell_network();
  refresher_.resume();
}

/// The network's thread closes pooled connections to servers that are no longer primaries.
void SecondaryZones::tell_network() const {
  ConnectionPool::Primaries primaries;
  for (const Primary& primary : primaries_of(runtime_->settings, runtime_->uses.primaries))
    primaries.insert(primary.endpoint);
  asio::post(network_.loop(), [&pool = network_.connections(), primaries = std::move(primaries),
                               source = runtime_->settings.server.transfer_source]() mutable {
    pool.configure(std::move(primaries), source);
  });
}

void SecondaryZones::notified(const NotifyRequest& request) {
  const bool known = refresher_.notified(request);
  if (known || early_.size() >= kMaxEarly) return;
  if (taking_over_ || secondary(request.zone)) early_.insert(request.zone);
}

}  // namespace pando::manager
