// Staging of small updates, without journal and sockets: loads one zone into a store, then each
// update adds or removes one address record and raises the serial, in a version of its own.
//
//   bench_update_stage ZONE-FILE ORIGIN COUNT
//
// The zone's SOA record is "ns.ORIGIN host.ORIGIN 1 3600 900 604800 300". Prints nanoseconds of CPU
// per update. Instructions per update:
//
//   valgrind --tool=callgrind --toggle-collect='*stage_all*' bench_update_stage ... 1000

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "bench/core/loaded_zone.h"
#include "dns/rdata/rdata.h"

namespace {

using namespace pando;
using bench::load_zone;
using bench::must;

zone::Record make_record(const std::string& owner, dns::RRType type, const std::string& text) {
  zone::Record record;
  record.owner = must(dns::Name::from_text(owner));
  record.type = type;
  record.ttl = {3600};
  must(dns::rdata_from_text(type, text, dns::NameView(), record.rdata));
  return record;
}

std::vector<zone::Changeset> make_updates(const std::string& origin, int count) {
  const auto soa = [&](int serial) {
    return make_record(
        origin, dns::RRType::kSOA,
        "ns." + origin + " host." + origin + " " + std::to_string(serial) + " 3600 900 604800 300");
  };
  std::vector<zone::Changeset> updates;
  for (int i = 0; i < count; ++i) {
    zone::Changeset update{must(dns::Name::from_text(origin)), {soa(1 + i)}, {soa(2 + i)}};
    auto& list = i % 2 == 0 ? update.added : update.removed;
    const std::string owner = "update" + std::to_string(i / 2 % 100) + "." + origin;
    list.push_back(make_record(owner, dns::RRType::kA, "192.0.2.1"));
    updates.push_back(std::move(update));
  }
  return updates;
}

[[gnu::noinline]] void stage_all(shm::Store& store, const std::vector<zone::Changeset>& updates) {
  for (const zone::Changeset& update : updates) {
    auto transaction = store.begin();
    const auto current = store.current();
    zone::Draft draft(transaction, current.root, current.number + 1);
    must(draft.apply(update, {}));
    const auto root = draft.root();
    must(store.publish(std::move(transaction), root, 0));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s ZONE-FILE ORIGIN COUNT\n", argv[0]);
    return 2;
  }
  shm::Store store = load_zone(argv[1], must(dns::Name::from_text(argv[2])));
  const auto updates = make_updates(argv[2], std::atoi(argv[3]));
  const std::clock_t begun = std::clock();
  stage_all(store, updates);
  const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  std::printf("%zu updates: %.0f ns each\n", updates.size(),
              seconds / static_cast<double>(updates.size()) * 1e9);
  return 0;
}
