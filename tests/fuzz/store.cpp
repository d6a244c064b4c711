// A live store whose octets have changed under a worker: attaching refuses it, or answers and
// transfers go on. No question crashes, reads outside of the store or fails to end; what is
// answered may be wrong.
//
// Input: one octet of mode and of which questions are asked, then changes of seven octets: two of
// place, one of kind, four of value.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "dns/dnssec/nsec3_hash.h"
#include "dns/encoding.h"
#include "dns/rdata/rdata.h"
#include "shm/layout.h"
#include "shm/reader.h"
#include "tests/fuzz/served_zone.h"
#include "worker/respond/responder.h"
#include "worker/respond/transfer_out.h"

namespace {

using namespace pando;

constexpr std::size_t kChangeBytes = 7;
constexpr std::size_t kMaxChanges = 32;
constexpr std::uint64_t kNow = 1'700'000'000;
constexpr std::uint8_t kHeader = 1;  // change the header, else the blocks
constexpr std::uint8_t kNsec3 = 2;   // the zone that is denied by NSEC3, else by NSEC
constexpr unsigned kFirstPart = 4;   // the bits from here on: which part of the questions

// With the owner behind it, where damage may put it, the server's name is too long.
const std::string kLabel(60, 'c');
const std::string kFarCut = kLabel + " 300 NS " + kLabel + "." + kLabel + "." + kLabel + ".test.\n";
const std::string kRecords = kFarCut + R"($TTL 300
@ SOA ns1 admin 7 3600 600 86400 60
@ NS ns1
@ NS ns.far.test.
@ MX 10 mail
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
sub NS ns1
sub DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123
ns.sub A 192.0.2.53
dn DNAME web
svc SVCB 1 . alpn=h2
)";

std::string nsec_zone() {
  return kRecords +
         "@ NSEC a.b.c NS SOA MX NSEC\n"
         "a.b.c NSEC sub TXT NSEC\n"
         "sub NSEC web NS DS NSEC\n"
         "web NSEC *.wild A NSEC\n"
         "*.wild NSEC @ TXT NSEC\n";
}

std::string nsec3_zone() {
  dns::Nsec3Hasher hasher;
  std::vector<std::string> labels;
  for (const char* name : {"example.", "c.example.", "b.c.example.", "a.b.c.example.",
                           "sub.example.", "wild.example.", "*.wild.example.", "web.example."}) {
    dns::Nsec3Hash hash;
    PANDO_ASSERT(hasher.hash(dns::Name::from_text(name).value(), 1, {}, hash));
    dns::append_base32hex(labels.emplace_back(), hash);
  }
  std::sort(labels.begin(), labels.end());
  std::string text = kRecords + "@ NSEC3PARAM 1 0 1 -\n";
  for (std::size_t i = 0; i < labels.size(); ++i)
    text += labels[i] + " NSEC3 1 1 1 - " + labels[(i + 1) % labels.size()] + " A\n";
  return text;
}

/// A record of the zone, as an update brings it.
zone::Record make_record(const char* owner, dns::RRType type, const std::string& rdata) {
  zone::Record record{dns::Name::from_text(owner).value(), type, {300}, {}};
  PANDO_ASSERT(dns::rdata_from_text(type, rdata, dns::NameView(), record.rdata));
  return record;
}

zone::Record make_soa(unsigned serial) {
  return make_record("example.", dns::RRType::kSOA,
                     fmt::format("ns1.example. admin.example. {} 3600 600 86400 60", serial));
}

constexpr unsigned kFirstSerial = 7;
constexpr unsigned kLastSerial = 9;

/// Some differences, one of them in several pieces; the zone is in the end as it was, its serial
/// apart.
void add_history(fuzz::ServedZone& served) {
  for (unsigned serial = kFirstSerial; serial < kLastSerial; ++serial) {
    zone::Changeset changes{served.apex(), {make_soa(serial)}, {make_soa(serial + 1)}};
    const bool comes = serial == kFirstSerial;
    const std::string text = fmt::format(" \"{}\"", std::string(250, 'x'));
    for (int i = 0; i < 18; ++i)
      (comes ? changes.added : changes.removed)
          .push_back(make_record(i < 5 ? "a.b.c.example." : "www2.example.", dns::RRType::kTXT,
                                 fmt::format("{}{}{}{}{}", i, text, text, text, text)));
    auto transaction = served.store().begin();
    const auto current = served.store().current();
    zone::Draft draft(transaction, current.root, current.number + 1);
    PANDO_ASSERT(draft.apply(changes, zone::DataLimits::none()));
    PANDO_ASSERT(served.store().publish(std::move(transaction), draft.root(), 0));
  }
  // Fewer records than the zone's: they are sent, not the zone.
  PANDO_ASSERT(worker::DifferenceStream::since(served.zone(), {kLastSerial - 1}));
}

/// A store's blocks in memory of their own, which ends where they end: so a read behind them, or
/// before them, is outside of everything. The real mapping would hide it.
class Image {
 public:
  explicit Image(const shm::Store& store) {
    const shm::Window window = store.window();
    const auto& header = *reinterpret_cast<const shm::Header*>(window.base());
    root_ = {header.publication.root.load()};
    const std::byte* const first = window.base() + shm::kFirstBlock;
    const std::byte* end = window.base() + window.limit();
    while (end > first && end[-1] == std::byte{0}) --end;
    octets_.assign(first, end);
    octets_.resize(shm::block_bytes(octets_.size()));
  }
  [[nodiscard]] std::size_t size() const noexcept { return octets_.size(); }
  [[nodiscard]] std::byte* at(std::size_t place) noexcept { return octets_.data() + place; }
  /// As shm::Reader::pin() has it.
  [[nodiscard]] zone::StoreView view() const noexcept {
    const auto start = reinterpret_cast<std::uintptr_t>(octets_.data()) - shm::kFirstBlock;
    const shm::Window window(reinterpret_cast<const std::byte*>(start),
                             shm::kFirstBlock + octets_.size());
    const shm::RootBlock* block = shm::root_block_at(window, root_);
    if (block == nullptr) return {};
    return {window, shm::Ref<>{block->root}, block->version};
  }

 private:
  std::vector<std::byte> octets_;
  shm::Ref<shm::RootBlock> root_;
};

/// Writes an input's changes over octets; its end takes them back.
class Damage {
 public:
  Damage(ByteView input, std::byte* start, std::size_t octets) : start_(start) {
    before_.assign(start, start + octets);
    for (std::size_t i = 0; i < kMaxChanges && input.size() >= kChangeBytes; ++i) {
      change(input.data(), octets);
      input = input.subspan(kChangeBytes);
    }
  }
  ~Damage() { std::copy(before_.begin(), before_.end(), start_); }
  Damage(const Damage&) = delete;
  Damage& operator=(const Damage&) = delete;

 private:
  void change(const std::uint8_t* input, std::size_t octets) {
    const std::size_t place = load_be16(input) % octets;
    const std::uint32_t value = load_be32(input + 3);
    const std::size_t word = std::min(place / 4 * 4, octets - 4);
    switch (input[2] % 3) {
      case 0:
        start_[place] = static_cast<std::byte>(value);
        break;
      case 1:
        std::memcpy(start_ + word, &value, sizeof value);
        break;
      default:  // a reference to some block, or into the middle of one
        const auto units = static_cast<std::uint32_t>(shm::kFirstBlock / shm::kUnit +
                                                      value % (octets / shm::kUnit + 1));
        std::memcpy(start_ + word, &units, sizeof units);
    }
  }

  std::byte* start_;
  std::vector<std::byte> before_;
};

struct Query {
  const char* name;
  dns::RRType type;
  int times = 1;
};
constexpr Query kQueries[] = {
    {"example.", dns::RRType::kSOA},
    {"example.", dns::RRType::kNS},
    {"example.", dns::RRType::kMX},
    {"example.", dns::RRType::kRRSIG},
    {"example.", dns::RRType::kANY},
    {"web.example.", dns::RRType::kA},
    {"web.example.", dns::RRType::kANY},
    {"web.example.", dns::RRType::kMX},
    {"www.example.", dns::RRType::kA},
    {"www.example.", dns::RRType::kANY},
    {"x.wild.example.", dns::RRType::kTXT},
    {"x.wild.example.", dns::RRType::kA},
    {"b.c.example.", dns::RRType::kA},
    {"b.c.example.", dns::RRType::kANY},
    {"a.b.c.example.", dns::RRType::kTXT},
    {"a.b.c.example.", dns::RRType::kA},
    {"no.such.example.", dns::RRType::kA},
    {"no.such.example.", dns::RRType::kANY},
    {"loop1.example.", dns::RRType::kA},
    {"loop1.example.", dns::RRType::kCNAME},
    {"svc.example.", dns::RRType::kSVCB},
    {"x.dn.example.", dns::RRType::kA},
    {"sub.example.", dns::RRType::kDS},
    {"other.test.", dns::RRType::kA},
    // Worked out, worked out and kept, put as it was kept.
    {"q.sub.example.", dns::RRType::kA, 3},
    {"q.cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.example.", dns::RRType::kA},
};
/// An input asks one part of them, so that many inputs are tried.
constexpr std::size_t kParts = 8;

Bytes make_request(const Query& query, bool dnssec_ok) {
  Bytes request(512);
  dns::MessageWriter writer(request, request.size());
  writer.put_header({});
  const auto name = dns::Name::from_text(query.name).value();
  PANDO_ASSERT(writer.put_question(name, query.type, dns::RRClass::kIN));
  const dns::OptBuilder opt(1232, dns::Rcode::kNoError, true);
  PANDO_ASSERT(!dnssec_ok || writer.put_raw_additional(opt.record()));
  request.resize(writer.finish().size());
  return request;
}

/// Asks a version what workers are asked. All that a worker remembers begins anew with each input.
class Asking {
 public:
  Asking(const zone::StoreView& snapshot, const worker::SideTable& side)
      : snapshot_(snapshot), responder_(*counters_, side), together_(*counters_, side) {
    together_.read_ahead_above(0);
    for (worker::Responder* each : {&responder_, &together_}) each->begin(snapshot, kNow, true);
  }
  void ask(std::size_t part) {
    for (std::size_t i = part; i < std::size(kQueries); i += kParts)
      for (int time = 0; time < kQueries[i].times; ++time)
        for (const bool dnssec_ok : {false, true}) ask(make_request(kQueries[i], dnssec_ok));
    if (part == 0) transfer();
    if (part == 1)
      for (unsigned serial = kFirstSerial; serial < kLastSerial; ++serial) differences({serial});
  }

 private:
  void ask(const Bytes& request) {
    worker::Client client;
    client.transport = ipc::Transport::kUdp;
    // One worker answers requests alone, another one each beside the request before.
    responder_.handle(before_, client, space_);
    const auto outcome = responder_.handle(request, client, space_);
    PANDO_ASSERT(outcome.size <= worker::kUdpSpace);
    const Bytes alone(space_.begin(), space_.begin() + static_cast<long>(outcome.size));
    const std::array<worker::Arrival, 2> arrivals = {{{before_, client}, {request, client}}};
    together_.read(arrivals);
    PANDO_ASSERT(together_.answer(0, space_).size <= worker::kUdpSpace);
    const auto same = together_.answer(1, space_);
    PANDO_ASSERT(std::equal(alone.begin(), alone.end(), space_.begin(),
                            space_.begin() + static_cast<long>(same.size)));
    before_ = request;
  }

  void transfer() {
    const zone::ZoneView zone = snapshot_.zone_at(dns::Name::from_text("example.").value());
    if (zone) send(worker::ZoneStream(zone));
  }
  void differences(dns::Serial since) {
    const zone::ZoneView zone = snapshot_.zone_at(dns::Name::from_text("example.").value());
    auto reader = zone::HistoryReader::from(zone, since);
    while (reader && reader->next() != nullptr) continue;
    auto stream = worker::DifferenceStream::since(zone, since);
    if (stream) send(std::move(*stream));
  }

  /// Some ten kilobytes, or what damage makes of them, up to a megabyte.
  template <class Stream>
  void send(Stream stream) {
    constexpr unsigned kMaxMessages = 64;
    Bytes space(16384);
    for (unsigned message = 0; message < kMaxMessages; ++message) {
      dns::MessageWriter writer(space, space.size());
      writer.put_header({});
      writer.keep_case();
      if (stream.fill(writer) != worker::StreamStep::kMore) return;
    }
  }

  zone::StoreView snapshot_;
  std::unique_ptr<worker::CounterArray> counters_ = std::make_unique<worker::CounterArray>();
  worker::Responder responder_;
  worker::Responder together_;
  Bytes before_ = make_request(kQueries[0], false);
  Bytes space_ = Bytes(worker::kUdpSpace);
};

class World {
 public:
  void run(ByteView input) {
    if (input.empty()) return;
    const std::size_t part = input[0] / kFirstPart % kParts;
    const ByteView changes = input.subspan(1);
    if ((input[0] & kHeader) != 0) return damage_header(changes, part);
    Image& image = (input[0] & kNsec3) != 0 ? nsec3_ : nsec_;
    const Damage damage(changes, image.at(0), image.size());
    Asking asking(image.view(),
                  [](std::uint32_t) -> const shm::Store::SideEntry* { return nullptr; });
    asking.ask(part);
  }

 private:
  /// A worker that has attached goes on; one that attaches is refused, or answers too.
  void damage_header(ByteView changes, std::size_t part) {
    // The store's own mapping may be written: it is the manager's.
    auto* const header = const_cast<std::byte*>(live_.store().window().base());
    const Damage damage(changes, header, sizeof(shm::Header));
    ask(attached_, part);
    auto late = shm::Reader::attach(lend(1), zone::layout_fingerprint(), 1);
    if (late) ask(*late, part);
  }
  static void ask(shm::Reader& reader, std::size_t part) {
    const shm::Reader::View view = reader.pin();
    Asking asking({view.window, view.root, view.version},
                  [&](std::uint32_t index) { return reader.side(index); });
    asking.ask(part);
    reader.unpin();
  }

  shm::SlotLoan lend(std::uint32_t number) {
    PANDO_ASSERT(slots_.add(number));
    return std::move(slots_.lend(number).value());
  }
  shm::SlotTable open_slots() const {
    std::filesystem::create_directories(live_.path() + ".slots");
    return shm::SlotTable::open(live_.path() + ".slots", live_.path(), zone::layout_fingerprint())
        .value();
  }
  static Image image_of(const std::string& zone_text) {
    fuzz::ServedZone served(zone_text);
    add_history(served);
    return Image(served.store());
  }

  Image nsec_ = image_of(nsec_zone());
  Image nsec3_ = image_of(nsec3_zone());
  fuzz::ServedZone live_{nsec3_zone()};
  shm::SlotTable slots_ = open_slots();
  shm::Reader attached_ = shm::Reader::attach(lend(0), zone::layout_fingerprint(), 0).value();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;  // its end removes the file
  world.run({data, size});
  return 0;
}
