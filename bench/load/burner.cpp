// Takes a share of a processor until it is ended, and does nothing for anybody: what queries lose
// beside it they lose to the machine.
//
//   bench_burner spin|memory SHARE [MEBIBYTES]
//
// `spin` stays in registers; `memory` writes at random places of so many mebibytes, each of which
// depends on what was read before. SHARE is 0 to 1 of one processor.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Between two looks at the clock; short beside what the kernel gives a process at a time.
constexpr int kSpins = 100'000;
constexpr int kSteps = 1'000;

double processor_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
}

void spin() {
  for (volatile int i = 0; i < kSpins;) i = i + 1;
}

/// One cycle through all cells, so that no walk stays in a small part of them.
std::vector<std::uint64_t> make_cycle(std::size_t mebibytes) {
  std::vector<std::uint64_t> order((mebibytes << 20) / sizeof(std::uint64_t));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  std::vector<std::uint64_t> next(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) next[order[i]] = order[(i + 1) % order.size()];
  return next;
}

/// The cell's upper half counts visits, so each step writes, too.
std::uint64_t walk(std::vector<std::uint64_t>& cells, std::uint64_t at) {
  for (int i = 0; i < kSteps; ++i) {
    const std::uint64_t next = cells[at] & 0xFFFFFFFF;
    cells[at] += std::uint64_t{1} << 32;
    at = next;
  }
  return at;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  const double share = argc > 2 ? std::atof(argv[2]) : 0;
  const long mebibytes = argc > 3 ? std::atol(argv[3]) : 64;
  if ((kind != "spin" && kind != "memory") || share <= 0 || share > 1 || mebibytes < 1) {
    std::fprintf(stderr, "usage: %s spin|memory SHARE [MEBIBYTES]\n", argv[0]);
    return 2;
  }
  auto cells = make_cycle(kind == "memory" ? static_cast<std::size_t>(mebibytes) : 0);
  std::puts("ready");
  std::fflush(stdout);
  const auto start = Clock::now();
  const double before = processor_seconds();
  for (std::uint64_t at = 0;;) {
    if (cells.empty())
      spin();
    else
      at = walk(cells, at);
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    const double ahead = (processor_seconds() - before) / share - passed;
    if (ahead > 0) std::this_thread::sleep_for(std::chrono::duration<double>(ahead));
  }
}
