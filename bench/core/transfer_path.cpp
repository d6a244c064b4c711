// Measures a worker's part of an AXFR out, without sockets: a zone is loaded into a store, and all
// of its records are written into messages, ROUNDS times.
//
//   bench_transfer_path ZONE-FILE ORIGIN [ROUNDS]
//
// Prints nanoseconds of CPU and octets per record. Instructions per record, which do not move with
// the machine's load:
//
//   valgrind --tool=callgrind --toggle-collect='*stream_zone*' bench_transfer_path ... 1

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "bench/core/loaded_zone.h"
#include "worker/respond/transfer_out.h"

namespace {

using namespace pando;
using bench::load_zone;
using bench::must;

struct Streamed {
  std::uint64_t records = 0;
  std::uint64_t octets = 0;
};

[[gnu::noinline]] Streamed stream_zone(const zone::ZoneView& zone, Bytes& space) {
  Streamed total;
  worker::ZoneStream stream(zone);
  for (auto step = worker::StreamStep::kMore; step == worker::StreamStep::kMore;) {
    dns::MessageWriter writer(space, worker::kTransferMessageOctets);
    writer.put_header({});
    writer.keep_case();
    step = stream.fill(writer);
    total.octets += writer.finish().size() + 2;  // the length of RFC 1035 §4.2.2
    if (step == worker::StreamStep::kStuck || step == worker::StreamStep::kDamaged) std::abort();
  }
  total.records = stream.records();
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s ZONE-FILE ORIGIN [ROUNDS]\n", argv[0]);
    return 2;
  }
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  const dns::Name apex = must(dns::Name::from_text(argv[2]));
  shm::Store store = load_zone(argv[1], apex);
  const auto current = store.current();
  const zone::StoreView view(store.window(), current.root, current.number);
  Bytes space(65535);
  Streamed total;
  const std::clock_t begun = std::clock();
  for (int round = 0; round < rounds; ++round) {
    const Streamed one = stream_zone(view.zone_at(apex), space);
    total.records += one.records;
    total.octets += one.octets;
  }
  const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  const auto records = static_cast<double>(total.records);
  std::printf("%.0f records, %d rounds: %.1f ns and %.2f octets a record\n", records / rounds,
              rounds, seconds / records * 1e9, static_cast<double>(total.octets) / records);
  return 0;
}
