// What reading a zone file costs without putting it anywhere: scans FILE by one thread and counts.
//
//   bench_zone_scan FILE ORIGIN [TURNS]
//
// Prints records, octets and, for each turn, seconds of CPU; the first turn may wait for the disk.

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "dns/zonefile/zone_scanner.h"

namespace {

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace pando;
  const auto origin = dns::Name::from_text(argc < 3 ? "" : argv[2]);
  if (argc < 3 || !origin) {
    std::fprintf(stderr, "usage: bench_zone_scan FILE ORIGIN [TURNS]\n");
    return 2;
  }
  dns::ScanOptions options;
  options.origin = *origin;
  for (int turn = argc > 3 ? std::atoi(argv[3]) : 1; turn > 0; --turn) {
    std::uint64_t records = 0, octets = 0;
    const double start = cpu_seconds();
    const auto report =
        dns::scan_zone_file(argv[1], options, [&](const dns::ScannedRecord& record) -> Status {
          ++records;
          octets += record.rdata.size();
          return {};
        });
    const double spent = cpu_seconds() - start;
    if (!report.ok()) {
      std::fprintf(stderr, "%s\n", report.errors.front().c_str());
      return 1;
    }
    std::printf("%.3f s, %llu records, %llu octets of RDATA\n", spent,
                static_cast<unsigned long long>(records), static_cast<unsigned long long>(octets));
  }
  return 0;
}
