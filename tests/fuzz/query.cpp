// From a raw packet to the response of a worker that serves a few zones: no input may break the
// responder, and whatever it sends is a whole message that answers this request.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "dns/zonefile/zone_scanner.h"
#include "shm/store.h"
#include "worker/respond/responder.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"

namespace {

using pando::Bytes;
using pando::ByteView;
using pando::dns::Name;

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}
void need(bool condition, const char* why) {
  if (!condition) stop(why);
}

const char* const kZone = R"($TTL 300
@ SOA ns1 admin 2026 3600 600 86400 60
@ NS ns1
@ NS ns.far
@ MX 10 mail
ns1 A 192.0.2.1
ns1 AAAA 2001:db8::1
mail A 192.0.2.25
www CNAME web
web A 192.0.2.80
a.b.c TXT "ent"
* TXT "wild"
loop1 CNAME loop2
loop2 CNAME loop1
sub NS ns.sub
sub DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123
ns.sub A 192.0.2.53
dn DNAME example.org.
svc SVCB 1 . alpn=h2
big TXT "0123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "1123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "2123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "3123456789012345678901234567890123456789012345678901234567890123456789"
big TXT "4123456789012345678901234567890123456789012345678901234567890123456789"
)";

class World {
 public:
  World() : path_("/dev/shm/pando-fuzz-query-" + std::to_string(::getpid())) {
    pando::shm::StoreOptions options;
    options.path = path_;
    options.size_limit = std::uint64_t{64} << 20;
    options.layout = pando::zone::layout_fingerprint();
    store_ = std::make_unique<pando::shm::Store>(pando::shm::Store::create(options).value());
    ::unlink(path_.c_str());  // the mapping is all that is needed
    auto transaction = store_->begin();
    pando::zone::Draft draft(transaction, {}, 2);
    pando::zone::ServerSettings server;
    server.identity = "fuzz";
    need(draft.put_server_settings(server).has_value(), "server settings");
    add(draft, transaction, "example.com.", true, 0);
    add(draft, transaction, "secondary.test.", true, 1);
    add(draft, transaction, "unloaded.test.", false, 2);
    const auto root = draft.root();
    need(store_->publish(std::move(transaction), root, 0).has_value(), "publish");
    pando::ipc::Keys keys;
    keys.shared = {key("query.")};
    keys.held = {{Name::from_text("update.").value(), pando::dns::TsigAlgorithm::kSha256}};
    keys.cookie_secrets = {pando::ipc::CookieSecret{1, 2, 3}};
    responder_.set_keys(pando::worker::make_key_set(std::move(keys)));
    need(ring_.add(key("query.")).has_value() && ring_.add(key("update.")).has_value(), "keys");
  }

  void run(ByteView input) {
    if (input.size() < 2) return;
    const std::uint8_t mode = input[0];
    Bytes message(input.begin() + 2, input.end());
    message.resize(std::min<std::size_t>(message.size(), 65535));
    if ((mode & 0x30) == 0x10) sign(message, "query.");
    if ((mode & 0x30) == 0x20) sign(message, "update.");
    pando::worker::Client client;
    const bool tcp = (mode & 1) != 0;
    client.transport = tcp ? pando::ipc::Transport::kTcp : pando::ipc::Transport::kUdp;
    client.remote.address =
        pando::IpAddress::from_text((mode & 2) != 0 ? "192.0.2.9" : "2001:db8::9").value();
    now_ += input[1] == 0;  // lets the error limit refill
    responder_.begin(view(), now_, (mode & 4) != 0);
    const auto outcome = responder_.handle(message, client, space_);
    check(outcome, message, tcp);
    if (outcome.action == pando::worker::Action::kForward) check_failure(message);
  }

 private:
  static pando::dns::TsigKey key(const char* name) {
    return {Name::from_text(name).value(), pando::dns::TsigAlgorithm::kSha256, Bytes(32, 7)};
  }
  static void add(pando::zone::Draft& draft, pando::shm::Transaction& transaction, const char* name,
                  bool loaded, std::uint32_t side) {
    const Name apex = Name::from_text(name).value();
    pando::zone::ZoneSettings settings;
    settings.allow_query = {{}};
    pando::zone::AclRule local;
    local.address = pando::IpPrefix::from_text("192.0.2.0/24").value();
    settings.allow_transfer = settings.allow_update = settings.allow_notify = {local};
    settings.is_secondary = side == 1;
    need(draft.put_zone_settings(apex, settings, side).has_value(), "zone settings");
    if (!loaded) return;
    pando::zone::ZoneBuilder builder(apex, transaction);
    pando::dns::ScanOptions options;
    options.origin = apex;
    const auto report = pando::dns::scan_zone_text(
        kZone, "zone", options, [&](const pando::dns::ScannedRecord& record) {
          return builder.add(record.owner, record.type, record.ttl, record.rdata);
        });
    need(report.ok(), report.ok() ? "" : report.errors.front().c_str());
    auto built = builder.finish();
    need(built.has_value() && draft.put_zone(apex, **built, {}).has_value(), "zone");
  }
  [[nodiscard]] pando::zone::StoreView view() const {
    const auto current = store_->current();
    return {store_->window(), current.root, current.number};
  }
  void sign(Bytes& message, const char* with) {
    auto session = pando::dns::TsigSession::for_request(*ring_.find(Name::from_text(with).value()));
    [[maybe_unused]] const auto done = session.sign(message, now_);
  }

  /// The response for the case that the manager does not answer.
  void check_failure(const Bytes& request) {
    const std::size_t size = responder_.make_failure(space_);
    if (size != 0) check({pando::worker::Action::kRespond, size, {}}, request, true);
  }

  void check(const pando::worker::Outcome& outcome, const Bytes& request, bool tcp) {
    using pando::worker::Action;
    if (outcome.action == Action::kTransfer) {
      need(tcp, "a transfer over UDP");
      const auto plan = responder_.take_transfer();
      need(static_cast<bool>(view().zone_at(plan.apex)), "a transfer of no zone");
      return;
    }
    if (outcome.size == 0) return;
    need(outcome.size <= (tcp ? 65535U : pando::worker::kUdpSpace), "too long");
    pando::dns::MessageReader reader({space_.data(), outcome.size});
    const auto header = reader.header();
    need(header.has_value() && header->qr, "no response");
    need(space_[0] == request[0] && space_[1] == request[1], "another ID");
    for (int i = 0; i < header->qdcount; ++i) need(reader.question().has_value(), "question");
    const int records = header->ancount + header->nscount + header->arcount;
    for (int i = 0; i < records; ++i) need(reader.record().has_value(), "record");
    need(reader.at_end(), "octets behind the response");
  }

  std::string path_;
  std::unique_ptr<pando::shm::Store> store_;
  std::unique_ptr<pando::worker::CounterArray> counters_ =
      std::make_unique<pando::worker::CounterArray>();
  pando::worker::Responder responder_{*counters_,
                                      [this](std::uint32_t index) { return store_->side(index); }};
  pando::dns::TsigKeyring ring_;
  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
  std::uint64_t now_ = 1'700'000'000;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World* const world = new World;
  world->run({data, size});
  return 0;
}
