// A live store whose octets have changed under a worker: attaching refuses it or answers go on. No
// question crashes, loops or gives more than a message; what it says may be wrong.
//
// Input: one octet of mode, then changes of seven octets: three of place, four of value. Places
// count in units of four octets from the header or from the first chunk in use.

#include <algorithm>

#include "shm/layout.h"
#include "shm/reader.h"
#include "tests/fuzz/served_zone.h"
#include "worker/responder.h"

namespace {

using namespace pando;

constexpr std::size_t kMaxChanges = 32;
constexpr std::uint8_t kHeader = 1;  // change the header and attach
constexpr std::uint8_t kNearby = 2;  // most of a chunk is unused: change where the zone is

const char* const kZone = R"($TTL 300
@ SOA ns1 admin 7 3600 600 86400 60
@ NS ns1
@ MX 10 mail
@ NSEC a.b.c NS SOA MX NSEC
ns1 A 192.0.2.1
ns1 AAAA 2001:db8::1
mail A 192.0.2.25
www CNAME web
web A 192.0.2.80
web A 192.0.2.81
a.b.c TXT "ent"
*.wild TXT "wild"
loop1 CNAME loop2
loop2 CNAME loop1
sub NS ns.sub
ns.sub A 192.0.2.53
dn DNAME web
svc SVCB 1 . alpn=h2
)";

struct Change {
  std::uint32_t* place;
  std::uint32_t before;
};

class World {
 public:
  void run(ByteView input) {
    if (input.empty()) return;
    const std::uint8_t mode = input[0];
    change(mode, input.subspan(1));
    if ((mode & kHeader) != 0)
      attach();
    else
      ask_everything();
    restore();
  }

 private:
  /// The store's own mapping may be written: it is the manager's.
  [[nodiscard]] std::byte* at(std::uint64_t offset) {
    return const_cast<std::byte*>(served_.store().window().base()) + offset;
  }
  void change(std::uint8_t mode, ByteView input) {
    const bool header = (mode & kHeader) != 0;
    const std::uint64_t start = header ? 0 : shm::kChunksOffset;
    const std::uint64_t octets = header                  ? sizeof(shm::Header)
                                 : (mode & kNearby) != 0 ? kZoneOctets
                                                         : shm::kChunkOctets;
    for (std::size_t i = 0; i < kMaxChanges && input.size() >= 7; ++i, input = input.subspan(7)) {
      const std::uint32_t place = (std::uint32_t{input[0]} << 16) | load_be16(input.data() + 1);
      auto* word = reinterpret_cast<std::uint32_t*>(at(start + place * 4ULL % octets));
      changes_.push_back({word, *word});
      std::memcpy(word, input.data() + 3, 4);
    }
  }
  void restore() {
    for (auto change = changes_.rbegin(); change != changes_.rend(); ++change)
      *change->place = change->before;
    changes_.clear();
  }

  /// As a worker of another process would; the descriptor of a slot file is not what is tested.
  void attach() {
    const auto reader = shm::Reader::attach(served_.path(), zone::layout_fingerprint(), 0, Fd());
    PANDO_ASSERT(!reader);  // without a slot file in any case
  }

  void ask_everything() {
    responder_.begin(served_.snapshot(), 1'700'000'000, true);
    for (const char* name : {"example.", "web.example.", "www.example.", "x.wild.example.",
                             "b.c.example.", "a.b.c.example.", "no.such.example.", "loop1.example.",
                             "q.sub.example.", "svc.example.", "x.dn.example.", "other.test."})
      for (const dns::RRType type : {dns::RRType::kA, dns::RRType::kANY, dns::RRType::kSOA})
        ask(dns::Name::from_text(name).value(), type);
  }
  void ask(const dns::Name& name, dns::RRType type) {
    Bytes request(512);
    dns::MessageWriter writer(request, request.size());
    writer.put_header({});
    PANDO_ASSERT(writer.put_question(name, type, dns::RRClass::kIN));
    dns::OptBuilder opt(1232, dns::Rcode::kNoError, true);
    PANDO_ASSERT(writer.put_raw_additional(opt.record()));
    request.resize(writer.finish().size());
    worker::Client client;
    client.transport = ipc::Transport::kUdp;
    const auto outcome = responder_.handle(request, client, space_);
    PANDO_ASSERT(outcome.size <= worker::kUdpSpace);
  }

  static constexpr std::uint64_t kZoneOctets = 6144;

  fuzz::ServedZone served_{kZone};
  std::vector<Change> changes_;
  std::unique_ptr<worker::CounterArray> counters_ = std::make_unique<worker::CounterArray>();
  worker::Responder responder_{*counters_,
                               [this](std::uint32_t index) { return served_.store().side(index); }};
  Bytes space_ = Bytes(65535);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;  // its end removes the file
  world.run({data, size});
  return 0;
}
