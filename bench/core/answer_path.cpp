// What a worker does between a query's octets and a response's, without sockets: loads one zone
// into a store and answers queries from a file, all of them in turn, ROUNDS times.
//
//   bench_answer_path ZONE-FILE ORIGIN QUERY-FILE [plain|DO] [ROUNDS [WARM-UP]]
//
// QUERY-FILE has dnsperf's form, NAME TYPE. WARM-UP rounds come first and do not count, so that
// caches have what a busy worker's have. Prints nanoseconds of CPU per query. Instructions per
// query, which do not move with the machine's load:
//
//   valgrind --tool=callgrind --toggle-collect='*answer_all*' bench_answer_path ... 1

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/core/loaded_zone.h"
#include "worker/respond/responder.h"

namespace {

using namespace pando;
using bench::load_zone;
using bench::must;

constexpr std::uint64_t kNow = 1'700'000'000;

Bytes make_query(const dns::Name& name, dns::RRType type, bool dnssec_ok) {
  Bytes message(512);
  dns::MessageWriter writer(message, message.size());
  writer.put_header({});
  if (!writer.put_question(name, type, dns::RRClass::kIN)) std::abort();
  const dns::OptBuilder opt(1232, dns::Rcode::kNoError, true);
  if (dnssec_ok && !writer.put_raw_additional(opt.record())) std::abort();
  message.resize(writer.finish().size());
  return message;
}

std::vector<Bytes> read_queries(const std::string& path, bool dnssec_ok) {
  std::vector<Bytes> queries;
  std::ifstream file(path);
  for (std::string name, type; file >> name >> type;) {
    const auto owner = dns::Name::from_text(name);
    const auto number = dns::rrtype_from_text(type);
    if (owner && number) queries.push_back(make_query(*owner, *number, dnssec_ok));
  }
  return queries;
}

/// Answers in batches of 64, as a busy worker does. Returns the octets of all responses.
[[gnu::noinline]] std::uint64_t answer_each(worker::Responder& responder,
                                            const zone::StoreView& view,
                                            const std::vector<Bytes>& queries, Bytes& space) {
  constexpr std::size_t kBatch = 64;
  constexpr std::size_t kTogether = worker::Responder::kTogether;
  worker::Client client;
  client.remote.address = IpAddress::from_text("192.0.2.1").value();
  std::array<worker::Arrival, kTogether> arrivals;
  std::uint64_t octets = 0;
  for (std::size_t i = 0; i < queries.size(); i += kTogether) {
    if (i % kBatch == 0) responder.begin(view, kNow, true);
    const std::size_t together = std::min(kTogether, queries.size() - i);
    for (std::size_t at = 0; at < together; ++at) arrivals[at] = {queries[i + at], client};
    responder.read({arrivals.data(), together});
    for (std::size_t at = 0; at < together; ++at) octets += responder.answer(at, space).size;
  }
  return octets;
}

/// answer_each() of the rounds that count: callgrind counts inside this function.
[[gnu::noinline]] std::uint64_t answer_all(worker::Responder& responder,
                                           const zone::StoreView& view,
                                           const std::vector<Bytes>& queries, Bytes& space,
                                           int rounds) {
  std::uint64_t octets = 0;
  for (int round = 0; round < rounds; ++round)
    octets += answer_each(responder, view, queries, space);
  return octets;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s ZONE-FILE ORIGIN QUERY-FILE [plain|DO] [ROUNDS [WARM-UP]]\n", argv[0]);
    return 2;
  }
  const bool dnssec_ok = argc > 4 && std::string(argv[4]) == "DO";
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 20;
  shm::Store store = load_zone(argv[1], must(dns::Name::from_text(argv[2])));
  const auto queries = read_queries(argv[3], dnssec_ok);
  const auto counters = std::make_unique<worker::CounterArray>();
  worker::Responder responder(*counters, [&](std::uint32_t index) { return store.side(index); });
  const auto current = store.current();
  const zone::StoreView view(store.window(), current.root, current.number);
  Bytes space(worker::kUdpSpace);
  const int warm_up = argc > 6 ? std::atoi(argv[6]) : 0;
  for (int round = 0; round < warm_up; ++round) answer_each(responder, view, queries, space);
  const std::clock_t begun = std::clock();
  const std::uint64_t octets = answer_all(responder, view, queries, space, rounds);
  const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  const double asked = static_cast<double>(queries.size()) * rounds;
  std::printf("%zu queries, %d rounds: %.0f ns a query, %.0f octets a response\n", queries.size(),
              rounds, seconds / asked * 1e9, static_cast<double>(octets) / asked);
  return 0;
}
