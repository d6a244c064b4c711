#include "manager/update/update_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ipc/log.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/commit/runtime_from.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/update_builder.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace update_service_test {

using dns::Rcode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using testing::runtime_from;
using ::testing::SizeIs;
using testing::UpdateBuilder;

constexpr const char* kConfiguration = R"(
server: {listen: [127.0.0.1@5300]}
keys:
  - {name: ours, algorithm: hmac-sha256, secret: "MDEyMzQ1Njc4OWFiY2RlZg=="}
  - {name: other, algorithm: hmac-sha256, secret: "ZmVkY2JhOTg3NjU0MzIxMA=="}
remotes:
  - {name: primary, address: [192.0.2.1@53]}
  - {name: partner, address: [192.0.2.2], tls: {hostname: partner.test}}
zones:
  - {name: example., file: x.zone, allow-update: [{key: ours}]}
  - {name: second.test., primaries: [primary], allow-notify: [{tls: partner}]}
  - {name: both.test., file: y.zone, allow-update: [{tls: partner, key: ours}]}
)";

class Service : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kNow = 1'800'000'000;

  /// Signs as a client does; the session checks the answer.
  Bytes sign(Bytes message, std::string_view key, std::uint64_t now = kNow) {
    client_.emplace(dns::TsigSession::for_request(*runtime_->keys.find(name(key))));
    EXPECT_TRUE(client_->sign(message, now).has_value());
    return message;
  }
  Bytes ask(ipc::ForwardKind kind, Bytes message, Bytes response = {},
            std::string_view client = "192.0.2.9@1000",
            ipc::Transport transport = ipc::Transport::kUdp) {
    ipc::Forward forward;
    forward.kind = kind;
    forward.transport = transport;
    forward.client = Endpoint::from_text(client).value();
    forward.message = std::move(message);
    forward.response = std::move(response);
    forward.peer = peer_;
    std::optional<Bytes> answer;
    service_.handle(std::move(forward), [&](Bytes octets) { answer = std::move(octets); });
    EXPECT_TRUE(parts_.run_until([&] { return answer.has_value(); }));
    return *answer;
  }
  using Answer = std::shared_ptr<std::optional<Bytes>>;
  /// An update whose answer is not waited for. Until the loop runs it waits as for a disk.
  Answer send(Bytes message, ipc::Transport transport = ipc::Transport::kUdp) {
    ipc::Forward forward;
    forward.transport = transport;
    forward.client = Endpoint::from_text("192.0.2.9@1000").value();
    forward.message = std::move(message);
    auto answer = std::make_shared<std::optional<Bytes>>();
    service_.handle(std::move(forward), [answer](Bytes octets) { *answer = std::move(octets); });
    return answer;
  }
  Bytes signed_add(const std::string& owner) {
    UpdateBuilder builder;
    builder.add(owner + " 60 A 192.0.2.9");
    return sign(builder.message(), "ours.");
  }
  Bytes update(Bytes message) { return ask(ipc::ForwardKind::kUpdate, std::move(message)); }
  static Rcode rcode(const Bytes& answer) {
    return answer.size() < 12 ? Rcode::kServFail : static_cast<Rcode>(answer[3] & 0x0F);
  }
  static UpdateBuilder add() {
    UpdateBuilder builder;
    builder.add("new 60 A 192.0.2.9");
    return builder;
  }
  static Bytes query(dns::Opcode opcode, std::string_view owner,
                     dns::RRType type = dns::RRType::kSOA,
                     dns::RRClass rr_class = dns::RRClass::kIN) {
    Bytes space(512);
    dns::MessageWriter writer(space, space.size());
    dns::Header header;
    header.id = 99;
    header.opcode = opcode;
    writer.put_header(header);
    EXPECT_TRUE(writer.put_question(name(owner), type, rr_class));
    space.resize(writer.finish().size());
    return space;
  }
  Rcode notify(Bytes message, std::string_view client = "192.0.2.1@5000") {
    return rcode(ask(ipc::ForwardKind::kNotify, std::move(message), {}, client));
  }

  testing::FakeDisk disk_;
  Parts parts_{64 << 20, disk_};
  RuntimePtr runtime_ = runtime_from(kConfiguration);
  std::vector<NotifyRequest> notified_;
  std::uint64_t now_ = kNow;
  std::uint64_t steady_ = 1000;
  UpdateService service_{parts_.committer, parts_.road, runtime_,
                         [this](const NotifyRequest& request) { notified_.push_back(request); },
                         [this] { return now_ * 1000; }, [this] { return steady_ * 1000; }};
  std::optional<dns::TsigSession> client_;
  std::optional<PeerIdentity> peer_;  ///< of ask()
  unsigned number_ = 0;
};

TEST_F(Service, ASignedUpdateIsAppliedAndItsAnswerSigned) {
  const Bytes answer = update(sign(add().message(7), "ours."));
  EXPECT_EQ(rcode(answer), Rcode::kNoError);
  EXPECT_EQ(load_be16(answer.data()), 7U);
  EXPECT_EQ(answer[2] >> 3 & 0x0F, 5) << "opcode UPDATE";
  EXPECT_TRUE(client_->verify_response(answer, kNow).has_value());
  EXPECT_THAT(parts_.zone.at("new"), ElementsAre("60 A 192.0.2.9"));
}

TEST_F(Service, ResultsAreCountedByZone) {
  const shm::test::Folder folder;
  auto counts = shm::ZoneCounts::open(folder.path(), 10);
  ASSERT_TRUE(counts) << counts.error().text;
  service_.set_zone_counts(&*counts);
  const auto counted = [&](std::string_view zone) {
    const auto view = shm::ZoneCountsView::open(folder.path()).value();
    const auto found = view.find(ipc::zone_count_key(name(zone)));
    return found ? std::vector<std::uint64_t>(found->begin(), found->begin() + 4)
                 : std::vector<std::uint64_t>{};
  };
  EXPECT_EQ(rcode(update(sign(add().message(1), "ours."))), Rcode::kNoError);
  EXPECT_EQ(rcode(update(add().message(2))), Rcode::kRefused);
  EXPECT_EQ(rcode(update(add().message(3))), Rcode::kRefused);
  UpdateBuilder builder;
  builder.yx("missing", "ANY");
  builder.add("new 60 A 192.0.2.8");
  EXPECT_EQ(rcode(update(sign(builder.message(4), "ours."))), Rcode::kNXDomain);
  EXPECT_THAT(counted("example."), ElementsAre(1, 1, 2, 0));
  EXPECT_THAT(counted("unknown."), IsEmpty());
}

TEST_F(Service, AnUnsignedUpdateIsRefusedWhereAKeyIsAsked) {
  EXPECT_EQ(rcode(update(add().message())), Rcode::kRefused);
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
}

TEST_F(Service, AKeyThatIsNotAllowedIsRefusedAndTheAnswerSigned) {
  const Bytes answer = update(sign(add().message(), "other."));
  EXPECT_EQ(rcode(answer), Rcode::kRefused);
  EXPECT_TRUE(client_->verify_response(answer, kNow).has_value());
}

TEST_F(Service, ABadSignatureIsNotAuth) {
  Bytes message = sign(add().message(), "ours.");
  message[message.size() - 20] ^= 1;
  const Bytes answer = update(std::move(message));
  EXPECT_EQ(rcode(answer), Rcode::kNotAuth);
  EXPECT_EQ(dns::find_tsig(answer).value().value().error, 16U);
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
}

TEST_F(Service, AnUpdateFromAnotherTimeIsNotAuth) {
  EXPECT_EQ(rcode(update(sign(add().message(), "ours.", kNow - 301))), Rcode::kNotAuth);
}

TEST_F(Service, ATruncatedMessageIsFormErr) {
  Bytes message = add().message();
  message.resize(message.size() - 3);
  EXPECT_EQ(rcode(update(std::move(message))), Rcode::kFormErr);
}

TEST_F(Service, ARequestThatCannotBeJudgedNowIsServFailAndNotDone) {
  const auto refuse = [&](Bytes message) {
    ipc::Forward forward;
    forward.client = Endpoint::from_text("192.0.2.9@1000").value();
    forward.message = std::move(message);
    std::optional<Bytes> answer;
    service_.refuse(
        std::move(forward), [&](Bytes octets) { answer = std::move(octets); }, "too early");
    return answer.value_or(Bytes());
  };
  const Bytes message = sign(add().message(7), "ours.");
  const Bytes answer = refuse(message);
  EXPECT_EQ(rcode(answer), Rcode::kServFail);
  EXPECT_TRUE(client_->verify_response(answer, kNow).has_value());
  Bytes forged = message;
  forged[forged.size() - 20] ^= 1;
  const Bytes error = refuse(std::move(forged));
  EXPECT_EQ(rcode(error), Rcode::kNotAuth);
  const auto tsig = dns::find_tsig(error);
  ASSERT_TRUE(tsig && *tsig) << "RFC 8945 §5.3.2";
  EXPECT_EQ((*tsig)->error, 16U) << "BADSIG";
  EXPECT_THAT((*tsig)->mac, IsEmpty());
  EXPECT_THAT(refuse(answer), IsEmpty()) << "an answer is no request";
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
  EXPECT_EQ(rcode(update(message)), Rcode::kNoError) << "the same, later";
}

/// RFC 1996 §3.6: the primary says it again only while it has no answer.
TEST_F(Service, ANotifyThatCannotBeJudgedNowHasNoAnswerOverUdp) {
  const auto refuse = [&](ipc::Transport transport) {
    ipc::Forward forward;
    forward.kind = ipc::ForwardKind::kNotify;
    forward.transport = transport;
    forward.client = Endpoint::from_text("192.0.2.1@5000").value();
    forward.message = query(dns::Opcode::kNotify, "second.test.");
    std::optional<Bytes> answer;
    service_.refuse(
        std::move(forward), [&](Bytes octets) { answer = std::move(octets); }, "too early");
    EXPECT_TRUE(answer.has_value()) << "the worker is to know that it is done with";
    return answer.value_or(Bytes());
  };
  EXPECT_THAT(refuse(ipc::Transport::kUdp), IsEmpty());
  const Bytes over_tcp = refuse(ipc::Transport::kTcp);
  EXPECT_THAT(over_tcp, ::testing::Not(IsEmpty()));
  EXPECT_EQ(rcode(over_tcp), Rcode::kServFail);
  EXPECT_THAT(notified_, IsEmpty());
}

/// Who is refused chooses how often.
TEST_F(Service, RefusalsAreToldOnceASecondWithTheirNumber) {
  log::start({"info", "text", "test"});
  std::uint16_t id = 0;  // equal messages would be repetitions
  const auto lines = [&](int refusals) {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < refusals; ++i)
      EXPECT_EQ(rcode(update(add().message(++id))), Rcode::kRefused);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string first = lines(100);
  EXPECT_THAT(first, ::testing::HasSubstr("update_refused zone=example. client=192.0.2.9@1000"));
  EXPECT_EQ(first.find("update_refused"), first.rfind("update_refused"));
  EXPECT_THAT(lines(3), IsEmpty());
  ++steady_;
  EXPECT_THAT(lines(1), ::testing::HasSubstr("updates=103"));
}

TEST_F(Service, AZoneThatIsNotOursIsNotAuthAndASecondaryRefused) {
  EXPECT_EQ(rcode(update(sign(UpdateBuilder("elsewhere.").message(), "ours."))), Rcode::kNotAuth);
  EXPECT_EQ(rcode(update(sign(UpdateBuilder("second.test.").message(), "ours."))), Rcode::kRefused);
}

TEST_F(Service, ARetransmittedUpdateGetsTheFirstAnswer) {
  UpdateBuilder builder;
  builder.nx("new", "ANY").add("new 60 A 192.0.2.9");
  const Bytes message = sign(builder.message(), "ours.");
  const Bytes first = update(message);
  EXPECT_EQ(rcode(first), Rcode::kNoError);
  EXPECT_EQ(update(message), first) << "executed again, the prerequisite would fail";
  EXPECT_EQ(service_.counters().repeated, 1U);
  EXPECT_EQ(service_.counters().updates, 1U);
}

TEST_F(Service, AnAnswerIsForgottenInTimeThoughTheClockWasPutBack) {
  const Bytes message = sign(add().message(), "ours.");
  EXPECT_EQ(rcode(update(message)), Rcode::kNoError);
  UpdateBuilder removal;
  removal.remove_name("new");
  EXPECT_EQ(rcode(update(sign(removal.message(), "ours."))), Rcode::kNoError);
  now_ -= 200;  // within the fudge
  steady_ += 13;
  EXPECT_EQ(rcode(update(message)), Rcode::kRefused) << "a replay, and no retransmission";
}

TEST_F(Service, AfterManyOtherUpdatesARetransmittedOneIsNotDoneAgain) {
  UpdateBuilder builder;
  builder.nx("new", "ANY").add("new 60 A 192.0.2.9");
  const Bytes message = sign(builder.message(), "ours.");
  const Bytes first = update(message);
  EXPECT_EQ(rcode(first), Rcode::kNoError);
  for (std::uint16_t id = 0; id < 1100; ++id)  // of what is there already: they change nothing
    EXPECT_EQ(rcode(update(sign(add().message(id), "ours."))), Rcode::kNoError);
  steady_ += 9;  // nsupdate's last try
  EXPECT_EQ(update(message), first);
}

TEST_F(Service, ARetransmittedUpdateThatCouldNotBeStoredIsDoneWhenItCan) {
  UpdateBuilder builder;
  builder.nx("new", "ANY").add("new 60 A 192.0.2.9");
  const Bytes message = sign(builder.message(), "ours.");
  disk_.fail = [](testing::FakeDisk::Call call, const std::string&) -> Status {
    return call == testing::FakeDisk::Call::kSync ? Status(fail(Errc::kIo, "ENOSPC")) : Status();
  };
  EXPECT_EQ(rcode(update(message)), Rcode::kServFail);
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
  disk_.fail = [](testing::FakeDisk::Call, const std::string&) { return Status(); };
  const Bytes done = update(message);
  EXPECT_EQ(rcode(done), Rcode::kNoError);
  EXPECT_THAT(parts_.zone.at("new"), ElementsAre("60 A 192.0.2.9"));
  EXPECT_EQ(update(message), done) << "what was done is remembered";
}

TEST_F(Service, ARetransmittedUpdateThatWasRefusedGetsTheRefusalAgain) {
  UpdateBuilder builder;
  builder.yx("new", "ANY").add("other 60 A 192.0.2.9");
  const Bytes message = sign(builder.message(), "ours.");
  const Bytes refused = update(message);
  EXPECT_EQ(rcode(refused), Rcode::kNXDomain);
  EXPECT_EQ(rcode(update(sign(add().message(8), "ours."))), Rcode::kNoError);
  EXPECT_EQ(update(message), refused);
}

TEST_F(Service, BeyondTheBoundUpdatesAreTurnedAwayAtOnceAndNotDoneLater) {
  service_.set_limits({2, 1 << 20});
  const Bytes repeated = signed_add("a");
  const Bytes too_many = signed_add("c");
  const Answer first = send(repeated);
  const Answer second = send(signed_add("b"));
  const Answer third = send(too_many);
  ASSERT_TRUE(third->has_value());
  EXPECT_EQ(rcode(**third), Rcode::kServFail);
  const Answer again = send(repeated);
  EXPECT_FALSE(again->has_value()) << "it waits with the first, and needs no place";
  ASSERT_TRUE(parts_.run_until([&] { return first->has_value() && second->has_value(); }));
  EXPECT_EQ(rcode(**first), Rcode::kNoError);
  EXPECT_EQ(rcode(**second), Rcode::kNoError);
  EXPECT_EQ(*again, *first);
  EXPECT_THAT(parts_.zone.at("c"), IsEmpty());
  EXPECT_EQ(service_.counters().failed, 1U);
  EXPECT_EQ(rcode(update(too_many)), Rcode::kNoError) << "there is room again, and it was not done";
}

/// Strangers must not fill the places of clients while the disk hangs.
TEST_F(Service, AStrangersUpdateIsRefusedWithoutWaiting) {
  const Answer answer = send(add().message());
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ(rcode(**answer), Rcode::kRefused);
}

TEST_F(Service, TheOctetsOfWaitingUpdatesAreBoundedAlsoOverTcp) {
  service_.set_limits({100, 1});
  const Answer first = send(signed_add("a"), ipc::Transport::kTcp);
  const Answer second = send(signed_add("b"), ipc::Transport::kTcp);
  ASSERT_TRUE(second->has_value());
  EXPECT_EQ(rcode(**second), Rcode::kServFail);
  ASSERT_TRUE(parts_.run_until([&] { return first->has_value(); }));
  EXPECT_EQ(rcode(**first), Rcode::kNoError);
  EXPECT_EQ(rcode(update(signed_add("b"))), Rcode::kNoError);
}

TEST_F(Service, ForgedUpdatesDoNotDisplaceAnswersThatMayBeAskedForAgain) {
  UpdateBuilder builder;
  builder.nx("new", "ANY").add("new 60 A 192.0.2.9");
  const Bytes message = sign(builder.message(), "ours.");
  const Bytes first = update(message);
  for (std::uint16_t id = 0; id < 3000; ++id) {
    Bytes forged = sign(add().message(id), "ours.");
    forged[forged.size() - 20] ^= 1;
    EXPECT_EQ(rcode(update(std::move(forged))), Rcode::kNotAuth);
  }
  EXPECT_EQ(update(message), first);
}

TEST_F(Service, WhileTheJournalsEndIsNotDurableEachUpdateIsServfail) {
  const Bytes there = sign(add().message(1), "ours.");
  EXPECT_EQ(rcode(update(there)), Rcode::kNoError);
  disk_.fail = [](testing::FakeDisk::Call call, const std::string&) -> Status {
    return call == testing::FakeDisk::Call::kSync ? fail(Errc::kIo, "EIO") : Status();
  };
  testing::open_journal_again(parts_);
  const Bytes known = sign(add().message(2), "ours.");
  const Bytes other = signed_add("other");
  EXPECT_EQ(rcode(update(known)), Rcode::kServFail) << "what it wants is there, but may be lost";
  EXPECT_EQ(rcode(update(other)), Rcode::kServFail);
  EXPECT_THAT(parts_.zone.at("other"), IsEmpty());
  disk_.fail = [](testing::FakeDisk::Call, const std::string&) { return Status(); };
  EXPECT_EQ(rcode(update(other)), Rcode::kNoError);
  EXPECT_EQ(rcode(update(known)), Rcode::kNoError);
}

/// INFO-CODE and EXTRA-TEXT of the extended error in a response, as "21 text"; "" = there is none.
std::string extended_error(const Bytes& answer) {
  dns::MessageReader reader(answer);
  const auto header = reader.header();
  EXPECT_TRUE(header && reader.question());
  for (unsigned i = 0; header && i < header->arcount; ++i) {
    const auto record = reader.record();
    EXPECT_TRUE(record);
    if (!record || record->type != dns::RRType::kOPT) continue;
    const auto opt = dns::read_opt(answer, *record);
    const auto error = opt ? dns::find_option(opt->options, dns::kOptionEde) : std::nullopt;
    if (!error || error->size() < 2) continue;
    return fmt::format("{} {}", load_be16(error->data()),
                       std::string(error->begin() + 2, error->end()));
  }
  return "";
}

/// An UPDATE with an OPT record.
Bytes with_edns(Bytes message) {
  const Bytes opt{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0};
  message.insert(message.end(), opt.begin(), opt.end());
  store_be16(message.data() + 10, static_cast<std::uint16_t>(load_be16(message.data() + 10) + 1));
  return message;
}

TEST_F(Service, ARefusalSaysWhyWhereThereIsAnOpt) {
  EXPECT_EQ(extended_error(update(sign(add().message(), "other."))), "");
  EXPECT_EQ(extended_error(update(sign(with_edns(add().message()), "other."))),
            "18 no rule of allow-update matches");
  EXPECT_EQ(extended_error(update(sign(with_edns(add().message(8)), "ours."))), "");
  UpdateBuilder key;
  key.raw_update({name("@"), dns::RRType::kNSEC3PARAM, dns::RRClass::kIN, 60, {1, 0, 0, 0, 0}});
  EXPECT_THAT(extended_error(update(sign(with_edns(key.message(9)), "ours."))),
              ::testing::StartsWith("21 "));
}

TEST_F(Service, AFrozenZoneTakesNoUpdates) {
  asio::io_context io;
  asio::thread_pool pool{1};
  shm::test::Folder folder;
  FrozenZones frozen(io, pool, native_files(), folder.path());
  std::ofstream(folder.path() + "/frozen-zones.list") << "example.\n";
  ASSERT_TRUE(frozen.load());
  service_.set_frozen(&frozen);
  EXPECT_EQ(extended_error(update(sign(with_edns(add().message()), "ours."))),
            "18 the zone is frozen");
  EXPECT_EQ(rcode(update(sign(add().message(8), "ours."))), Rcode::kRefused);
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
  EXPECT_EQ(extended_error(update(with_edns(add().message(9)))),
            "18 no rule of allow-update matches")
      << "strangers do not learn it";
  service_.set_frozen(nullptr);
  // Frozen behind the first look, while the update waits.
  const Answer late = send(sign(add().message(10), "ours."));
  service_.set_frozen(&frozen);
  ASSERT_TRUE(parts_.run_until([&] { return late->has_value(); }));
  EXPECT_NE(rcode(**late), Rcode::kNoError);
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
  service_.set_frozen(nullptr);
  EXPECT_EQ(rcode(update(sign(add().message(11), "ours."))), Rcode::kNoError);
  pool.join();
}

TEST_F(Service, ASignatureIsGoodForOneUpdate) {
  const Bytes message = sign(add().message(), "ours.");
  const auto ask_from = [&](const char* client) {
    return rcode(ask(ipc::ForwardKind::kUpdate, message, {}, client, ipc::Transport::kTcp));
  };
  EXPECT_EQ(ask_from("192.0.2.9@1000"), Rcode::kNoError);
  UpdateBuilder removal;
  removal.remove_name("new");
  EXPECT_EQ(rcode(update(sign(removal.message(), "ours."))), Rcode::kNoError);
  now_ += 299;  // within the fudge
  EXPECT_EQ(ask_from("192.0.2.9@1000"), Rcode::kRefused);
  EXPECT_EQ(ask_from("198.51.100.1@53"), Rcode::kRefused);
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty()) << "a recorded update brings nothing back";
  now_ += 2;
  EXPECT_EQ(ask_from("192.0.2.9@1000"), Rcode::kNotAuth) << "the signature is too old";
}

TEST_F(Service, TheAnswerToAnUpdateRepeatsTheZoneSection) {
  const Bytes answer = update(sign(add().message(), "ours."));
  dns::MessageReader reader(answer);
  EXPECT_EQ(reader.header()->qdcount, 1U);
  const auto zone = reader.question();
  ASSERT_TRUE(zone.has_value());
  EXPECT_EQ(zone->type, dns::RRType::kSOA);
  EXPECT_EQ(zone->name, name("@"));
}

TEST_F(Service, ASignedQuerysResponseIsSigned) {
  Bytes response = query(dns::Opcode::kQuery, "www");
  response[2] |= 0x80;
  const Bytes signed_query = sign(query(dns::Opcode::kQuery, "www"), "ours.");
  const Bytes answer = ask(ipc::ForwardKind::kSignedQuery, signed_query, response);
  EXPECT_TRUE(client_->verify_response(answer, kNow).has_value());
}

TEST_F(Service, AQueryWithABadSignatureDoesNotGetTheResponse) {
  Bytes response = query(dns::Opcode::kQuery, "www");
  response[2] |= 0x80;
  Bytes message = sign(query(dns::Opcode::kQuery, "www"), "ours.");
  message[message.size() - 20] ^= 1;
  EXPECT_EQ(rcode(ask(ipc::ForwardKind::kSignedQuery, message, response)), Rcode::kNotAuth);
}

TEST_F(Service, ANotifyForASecondaryZoneFromItsPrimaryIsPassedOn) {
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "second.test.")), Rcode::kNoError);
  ASSERT_THAT(notified_, SizeIs(1));
  EXPECT_EQ(to_text(notified_[0].zone), "second.test.");
  EXPECT_FALSE(notified_[0].key);
  EXPECT_EQ(notify(sign(query(dns::Opcode::kNotify, "second.test."), "ours.")), Rcode::kNoError);
  EXPECT_EQ(notified_.back().key, name("ours."));
}

TEST_F(Service, ANotifyFromAStrangerIsRefused) {
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "second.test."), "192.0.2.77@53"), Rcode::kRefused);
  EXPECT_THAT(notified_, IsEmpty());
}

TEST_F(Service, ANotifyWithTheIdentityOfARuleIsPassedOn) {
  const std::string_view elsewhere = "198.51.100.77@5000";
  peer_ = PeerIdentity{{"partner"}};
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "second.test."), elsewhere), Rcode::kNoError);
  peer_ = PeerIdentity{};
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "second.test."), elsewhere), Rcode::kRefused);
  peer_.reset();
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "second.test."), elsewhere), Rcode::kRefused);
  EXPECT_THAT(notified_, SizeIs(1));
}

TEST_F(Service, AnUpdateNeedsTheKeyAndTheIdentityOfOneRule) {
  const auto both = [&](std::string_view key) {
    Bytes message = query(dns::Opcode::kUpdate, "both.test.");
    message[1] = static_cast<std::uint8_t>(++number_);  // a message of its own each time
    if (!key.empty()) message = sign(std::move(message), key);
    return rcode(ask(ipc::ForwardKind::kUpdate, std::move(message), {}, "192.0.2.9@1000",
                     ipc::Transport::kTcp));
  };
  EXPECT_EQ(both("ours."), Rcode::kRefused) << "over plain TCP";
  peer_ = PeerIdentity{{"other"}};
  EXPECT_EQ(both("ours."), Rcode::kRefused);
  peer_ = PeerIdentity{{"partner"}};
  EXPECT_EQ(both(""), Rcode::kRefused);
  EXPECT_EQ(both("other."), Rcode::kRefused);
  EXPECT_NE(both("ours."), Rcode::kRefused);
}

TEST_F(Service, ANotifyForAPrimaryOrUnknownZoneIsNotAuth) {
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "@")), Rcode::kNotAuth);
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "elsewhere.")), Rcode::kNotAuth);
}

TEST_F(Service, ANotifyOfAnotherClassOrTypeReachesNobody) {
  EXPECT_EQ(
      notify(query(dns::Opcode::kNotify, "second.test.", dns::RRType::kSOA, dns::RRClass::kCH)),
      Rcode::kNotAuth);
  EXPECT_EQ(notify(query(dns::Opcode::kNotify, "second.test.", dns::RRType::kCDS)), Rcode::kNotImp);
  EXPECT_THAT(notified_, IsEmpty());
}

TEST_F(Service, ANotifyWithABrokenSoaIsFormErr) {
  Bytes message = query(dns::Opcode::kNotify, "second.test.");
  const Bytes short_soa = {0xC0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 1};
  append(message, short_soa);
  message[7] = 1;
  EXPECT_EQ(notify(std::move(message)), Rcode::kFormErr);
  EXPECT_THAT(notified_, IsEmpty());
}

TEST_F(Service, ARequestThatIsAnAnswerIsDropped) {
  Bytes message = add().message();
  message[2] |= 0x80;
  EXPECT_THAT(update(sign(std::move(message), "ours.")), IsEmpty());
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
}

TEST_F(Service, AnUnknownVersionOfTheKeysLeavesRequestsUnderWayAlone) {
  const Bytes message = sign(add().message(), "ours.");
  ipc::Forward forward;
  forward.client = Endpoint::from_text("192.0.2.9@1000").value();
  forward.message = message;
  std::optional<Bytes> answer;
  service_.handle(std::move(forward), [&](Bytes octets) { answer = std::move(octets); });
  service_.set_runtime(runtime_from("server: {listen: [127.0.0.1@5300]}\nzones: []\n"));
  ASSERT_TRUE(parts_.run_until([&] { return answer.has_value(); }));
  EXPECT_TRUE(client_->verify_response(*answer, kNow).has_value());
}

}  // namespace update_service_test
}  // namespace pando::manager
