// Zones with settings of their own: time and longest step of adding them, as a reload does, and the
// time of a lookup.
//
//   bench_zone_settings ZONES

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "base/result.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

using namespace pando;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kSlice = 256;  // as manager/commit/zone_table_sync.cpp

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

dns::Name apex(std::size_t number) {
  return *dns::Name::from_text(fmt::format("z{}.example.", number));
}

zone::ZoneSettings settings_of(std::size_t number) {
  zone::ZoneSettings settings;
  settings.allow_query.push_back({});
  settings.allow_query.back().key = *dns::Name::from_text(fmt::format("key{}.", number));
  return settings;
}

struct Times {
  double total = 0;
  double longest = 0;
};

/// Puts settings into all zones; `shift` chooses which.
Times put_all(shm::Store& store, std::size_t zones, std::size_t shift) {
  Times times;
  for (std::size_t at = 0; at < zones; at += kSlice) {
    const auto start = Clock::now();
    auto transaction = store.begin();
    const auto current = store.current();
    zone::Draft draft(transaction, current.root, current.number + 1);
    for (std::size_t i = at; i < std::min(at + kSlice, zones); ++i)
      PANDO_ASSERT(
          draft.put_zone_settings(apex(i), settings_of(i + shift), static_cast<std::uint32_t>(i)));
    PANDO_ASSERT(store.publish(std::move(transaction), draft.root(), 0));
    store.reclaim();
    const double spent = milliseconds(Clock::now() - start);
    times.total += spent;
    times.longest = std::max(times.longest, spent);
  }
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t zones = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 20'000;
  shm::StoreOptions options;
  options.path = fmt::format("/dev/shm/pando-bench-{}", ::getpid());
  options.size_limit = std::uint64_t{4} << 30;
  options.layout = zone::layout_fingerprint();
  auto store = shm::Store::create(options);
  PANDO_ASSERT(store);
  for (const std::size_t shift : {std::size_t{0}, zones}) {
    const Times times = put_all(*store, zones, shift);
    std::printf("%s: %.0f ms, longest step %.2f ms, peak %.1f MiB\n",
                shift == 0 ? "added" : "changed", times.total, times.longest,
                static_cast<double>(store->stats().peak_chunks) / 16);
  }
  const auto current = store->current();
  const zone::StoreView view(store->window(), current.root, current.number);
  constexpr std::size_t kLookups = 20'000;
  std::size_t octets = 0;
  double spent = 0;
  for (std::size_t i = 0; i < kLookups; ++i) {
    const zone::ZoneView zone = view.zone_at(apex(i * 7919 % zones));
    const auto start = Clock::now();
    octets += zone.settings_bytes().size();
    spent += milliseconds(Clock::now() - start);
  }
  std::printf("lookup: %.0f ns (%zu octets)\n", spent * 1e6 / kLookups, octets / kLookups);
  ::unlink(options.path.c_str());
}
