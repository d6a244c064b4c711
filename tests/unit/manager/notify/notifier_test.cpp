#include "manager/notify/notifier.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "dns/message/message.h"
#include "manager/request/client_request.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/commit/runtime_from.h"
#include "tests/unit/manager/loopback.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace notifier_test {

using ::testing::HasSubstr;
using testing::name;
using testing::Parts;

/// A UDP socket on 127.0.0.1 that plays a secondary.
class Secondary {
 public:
  [[nodiscard]] std::uint16_t port() const { return socket_.endpoint.port; }
  [[nodiscard]] std::string address() const { return to_text(socket_.endpoint); }

  /// The next NOTIFY, empty when there is none.
  Bytes receive() {
    Bytes message(4096);
    socklen_t size = sizeof from_;
    const ssize_t got = ::recvfrom(socket_.fd.get(), message.data(), message.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from_), &size);
    message.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    if (got > 0) ++received_;
    return message;
  }
  /// To whom the last one came from.
  void send(const Bytes& message) {
    ::sendto(socket_.fd.get(), message.data(), message.size(), 0,
             reinterpret_cast<sockaddr*>(&from_), sizeof from_);
  }
  [[nodiscard]] int received() const { return received_; }
  void close() { socket_.fd = {}; }
  void open_again() {
    socket_.fd = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_storage address{};
    const socklen_t size = socket_.endpoint.to_sockaddr(address);
    ASSERT_EQ(::bind(socket_.fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  }

 private:
  testing::LoopbackSocket socket_{SOCK_DGRAM | SOCK_NONBLOCK};
  sockaddr_in from_{};
  int received_ = 0;
};

std::uint32_t serial_of(const Bytes& notify) {
  dns::MessageReader reader(notify);
  const auto header = reader.header();
  const auto question = reader.question();
  const auto record = reader.record();
  if (!header || !question || !record) return 0;
  return load_be32(notify.data() + record->rdata_offset + record->rdata_length - 20);
}

RuntimePtr configuration(const std::vector<std::string>& remotes, const std::string& more = "",
                         bool with_key = false) {
  std::string text = "server: {listen: [127.0.0.1@5300]}\n";
  text += "keys: [{name: ours, secret: \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"}]\n";
  text += "remotes:\n";
  std::string names;
  for (std::size_t i = 0; i < remotes.size(); ++i) {
    text += fmt::format("  - {{name: r{}, address: [{}]{}}}\n", i, remotes[i],
                        with_key ? ", key: ours" : "");
    names += fmt::format("{}r{}", i == 0 ? "" : ", ", i);
  }
  text += fmt::format("zones: [{{name: example., file: x.zone, notify: [{}]{}}}]\n", names, more);
  return testing::runtime_from(text);
}

class NotifierTest : public ::testing::Test {
 protected:
  static Notifier::Options quick() {
    Notifier::Options options;
    options.queue.tries = 3;
    options.queue.first_pause = 20;
    options.timeout = std::chrono::milliseconds(40);
    options.presence.probe_time = 0;
    return options;
  }
  /// Waits where a NOTIFY must not be lost to a slow machine.
  static Notifier::Options patient() {
    Notifier::Options options;
    options.timeout = std::chrono::seconds(60);
    options.presence.probe_time = 0;
    return options;
  }
  Notifier& start(const RuntimePtr& runtime, const Notifier::Options& options) {
    runtime_ = runtime;
    notifier_ = std::make_unique<Notifier>(parts_.io, network_, parts_.committer, options,
                                           [this](const IpAddress&) { return seen_; });
    notifier_->configure(runtime);
    parts_.committer.on_published([this](const PublishedVersion& version) {
      for (const PublishedZone& changed : version.changed) notifier_->zone_changed(changed.zone);
    });
    return *notifier_;
  }
  Bytes next(Secondary& secondary) {
    Bytes message;
    EXPECT_TRUE(parts_.run_until([&] { return !(message = secondary.receive()).empty(); }));
    return message;
  }
  void change() { ASSERT_TRUE(testing::update(parts_, {}, {}).has_value()); }
  void wait_for(const std::function<bool(const Notifier::Counters&)>& condition) {
    EXPECT_TRUE(parts_.run_until([&] { return condition(notifier_->counters()); }));
  }
  std::string status(const Secondary& secondary, const char* zone = "@") {
    return notifier_->status(name(zone))[secondary.address()];
  }
  void put_other_zone() {
    const auto settings = [](zone::Draft& draft) {
      return draft.put_zone_settings(name("other.test."), {}, 1);
    };
    ASSERT_TRUE(parts_.edit(settings).has_value());
    shm::Transaction built_in = parts_.zone.store().begin_private();
    zone::ZoneBuilder builder(name("other.test."), built_in);
    for (const char* line :
         {"other.test. 60 SOA ns1 admin 1 3600 600 86400 300", "other.test. 60 NS ns1"}) {
      const zone::Record one = testing::record(line);
      ASSERT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata).has_value());
    }
    const auto built = builder.finish();
    ASSERT_TRUE(built.has_value());
    std::optional<Status> put;
    parts_.put_whole(name("other.test."), *built, std::move(built_in),
                     [&](const Status& status) { put = status; });
    ASSERT_TRUE(parts_.run_until([&] { return put.has_value(); }));
    ASSERT_TRUE(put->has_value());
  }

  Parts parts_;
  std::uint64_t seen_ = 0;
  RuntimePtr runtime_;
  std::unique_ptr<Notifier> notifier_;
  Network network_;  // ends first
};

TEST_F(NotifierTest, TellsEachRemoteOfAnUpdate) {
  Secondary one, two;
  start(configuration({one.address(), two.address()}), patient());
  EXPECT_EQ(status(one), "not yet");
  change();
  for (Secondary* secondary : {&one, &two}) {
    const Bytes notify = next(*secondary);
    EXPECT_EQ(serial_of(notify), 11U);
    secondary->send(make_reply(ParsedRequest(notify), dns::Rcode::kNoError, true));
  }
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 2; });
  EXPECT_EQ(notifier_->counters().sent, 2U);
  EXPECT_EQ(notifier_->counters().failed, 0U);
  EXPECT_THAT(status(one), HasSubstr("serial 11 at "));
  EXPECT_THAT(status(one), HasSubstr("NOERROR"));
}

TEST_F(NotifierTest, ARemoteThatComesUpHearsOfTheNewsWithoutAPause) {
  Secondary secondary;
  secondary.close();
  Notifier::Options options;
  options.queue.first_pause = 3'600'000;  // only probes can come in this test
  options.timeout = std::chrono::milliseconds(50);
  options.presence.probe_time = 3'600'000;
  options.probe_pause = std::chrono::milliseconds(10);
  start(configuration({secondary.address()}), options);
  change();
  wait_for([](const Notifier::Counters& counters) { return counters.sent >= 4; });
  secondary.open_again();
  secondary.send(make_reply(ParsedRequest(next(secondary)), dns::Rcode::kNoError, true));
  EXPECT_TRUE(parts_.run_until([&] {
    if (const Bytes late = secondary.receive(); !late.empty())
      secondary.send(make_reply(ParsedRequest(late), dns::Rcode::kNoError, true));
    return notifier_->counters().answered == 1;
  }));
  EXPECT_EQ(notifier_->counters().failed, 0U);
  EXPECT_THAT(status(secondary), HasSubstr("NOERROR"));
}

TEST_F(NotifierTest, ARemoteThatIsProbedGetsOneNotifyAtATimeAndEachZoneItsTurn) {
  put_other_zone();
  Secondary secondary;
  Notifier::Options options;
  options.timeout = std::chrono::milliseconds(20);
  options.presence.probe_time = 3'600'000;
  options.probe_pause = std::chrono::milliseconds(5);
  const std::string other = "}, {name: other.test., file: y.zone, notify: [r0]";
  start(configuration({secondary.address()}, other), options).tell_all();
  std::set<std::uint32_t> serials;  // of example. and other.test.
  while (serials.size() < 2 && !HasFailure()) serials.insert(serial_of(next(secondary)));
  EXPECT_EQ(notifier_->counters().failed, 0U) << "probes do not count";
}

TEST_F(NotifierTest, TheDatagramOfAProbeIsRepeatedUntilItsAnswerComes) {
  Secondary secondary;
  Notifier::Options options = patient();
  options.presence.probe_time = 3'600'000;
  options.probe_pause = std::chrono::milliseconds(10);
  start(configuration({secondary.address()}), options);
  change();
  const Bytes first = next(secondary);
  EXPECT_EQ(next(secondary), first);
  secondary.send(make_reply(ParsedRequest(first), dns::Rcode::kNoError, true));
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 1; });
  EXPECT_EQ(notifier_->counters().sent, 1U);
}

TEST_F(NotifierTest, AQueryOfASilentRemoteEndsThePause) {
  Secondary secondary;
  Notifier::Options options = quick();
  options.queue.first_pause = 3'600'000;
  options.look_pause = 1;
  start(configuration({secondary.address()}), options);
  change();
  next(secondary);
  EXPECT_TRUE(
      parts_.run_until([&] { return status(secondary).find("pending, 1") != std::string::npos; }));
  seen_ = 7;
  const Bytes again = next(secondary);
  secondary.send(make_reply(ParsedRequest(again), dns::Rcode::kNoError, true));
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 1; });
}

TEST_F(NotifierTest, AnAnswerForOneZoneEndsThePauseOfAnother) {
  put_other_zone();
  Secondary secondary;
  secondary.close();
  Notifier::Options options = patient();  // ICMP ends the first try, not the clock
  options.queue.tries = 1;               // so that its end is told
  options.queue.first_pause = 3'600'000;
  const std::string other = "}, {name: other.test., file: y.zone, notify: [r0]";
  start(configuration({secondary.address()}, other), options);
  notifier_->zone_changed(name("other.test."));
  EXPECT_TRUE(parts_.run_until([&] {
    return status(secondary, "other.test.").find("refused") != std::string::npos;
  }));
  secondary.open_again();
  change();
  Bytes notify = next(secondary);
  EXPECT_EQ(serial_of(notify), 11U) << "of example.";
  secondary.send(make_reply(ParsedRequest(notify), dns::Rcode::kNoError, true));
  notify = next(secondary);
  EXPECT_EQ(serial_of(notify), 1U) << "of other.test.";
  secondary.send(make_reply(ParsedRequest(notify), dns::Rcode::kNoError, true));
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 2; });
}

TEST_F(NotifierTest, ChangesDuringOneAreOneMoreWithTheNewestSerial) {
  Secondary secondary;
  start(configuration({secondary.address()}), patient());
  change();
  const Bytes first = next(secondary);
  EXPECT_EQ(serial_of(first), 11U);
  for (int i = 0; i < 5; ++i) change();
  EXPECT_TRUE(secondary.receive().empty()) << "one at a time";
  secondary.send(make_reply(ParsedRequest(first), dns::Rcode::kNoError, true));
  const Bytes second = next(secondary);
  EXPECT_EQ(serial_of(second), 16U);
  secondary.send(make_reply(ParsedRequest(second), dns::Rcode::kNoError, true));
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 2; });
  EXPECT_EQ(notifier_->counters().sent, 2U);
}

TEST_F(NotifierTest, SilentRemoteIsTriedSoManyTimes) {
  Secondary secondary;
  start(configuration({secondary.address()}), quick());
  change();
  wait_for([](const Notifier::Counters& counters) { return counters.failed == 1; });
  while (!secondary.receive().empty()) continue;
  EXPECT_EQ(secondary.received(), 3);
  EXPECT_EQ(notifier_->counters().sent, 3U);
  EXPECT_EQ(notifier_->counters().answered, 0U);
  EXPECT_THAT(status(secondary), HasSubstr("no answer"));
}

TEST_F(NotifierTest, ClosedPortIsNoReasonToWait) {
  Secondary secondary;
  secondary.close();
  Notifier::Options options = patient();  // ICMP ends each try, not the clock
  options.queue.tries = 3;
  options.queue.first_pause = 1;
  start(configuration({secondary.address()}), options);
  change();
  wait_for([](const Notifier::Counters& counters) { return counters.failed == 1; });
  EXPECT_EQ(notifier_->counters().sent, 3U);
  EXPECT_THAT(status(secondary), HasSubstr("refused"));
}

TEST_F(NotifierTest, AnswersOfOthersDoNotCount) {
  Secondary secondary;
  start(configuration({secondary.address()}), patient());
  change();
  const Bytes notify = next(secondary);
  Bytes wrong = make_reply(ParsedRequest(notify), dns::Rcode::kNoError, true);
  wrong[0] = static_cast<std::uint8_t>(wrong[0] + 1);  // ID
  secondary.send(wrong);
  secondary.send(make_reply(ParsedRequest(notify), dns::Rcode::kRefused, true));
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 1; });
  EXPECT_EQ(notifier_->counters().failed, 1U);
  EXPECT_THAT(status(secondary), HasSubstr("REFUSED"));
}

TEST_F(NotifierTest, ServfailIsTriedAgain) {
  Secondary secondary;
  Notifier::Options options = patient();
  options.queue.first_pause = 1;
  start(configuration({secondary.address()}), options);
  change();
  secondary.send(make_reply(ParsedRequest(next(secondary)), dns::Rcode::kServFail, true));
  secondary.send(make_reply(ParsedRequest(next(secondary)), dns::Rcode::kNoError, true));
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 1; });
  EXPECT_EQ(notifier_->counters().sent, 2U);
}

TEST_F(NotifierTest, SignsWithTheKeyOfTheRemote) {
  Secondary secondary;
  start(configuration({secondary.address()}, "", true), patient());
  change();
  const Bytes notify = next(secondary);
  const auto now = static_cast<std::uint64_t>(std::time(nullptr));
  ipc::Forward forward;
  forward.message = notify;
  ClientRequest request(std::move(forward), runtime_, nullptr);
  ASSERT_TRUE(request.verify(now));
  ASSERT_NE(request.key(), nullptr);
  const Bytes reply = make_reply(request.parsed(), dns::Rcode::kNoError, true);
  secondary.send(reply);  // unsigned: anybody's
  secondary.send(request.sign(reply, now));
  wait_for([](const Notifier::Counters& counters) { return counters.answered == 1; });
  EXPECT_THAT(status(secondary), HasSubstr("NOERROR"));
}

TEST_F(NotifierTest, WaitsForTheDelay) {
  Secondary secondary;
  start(configuration({secondary.address()}, ", notify-delay: 300ms"), patient());
  const auto begin = std::chrono::steady_clock::now();
  change();
  EXPECT_EQ(serial_of(next(secondary)), 11U);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

TEST_F(NotifierTest, AtAStartEachZoneIsTold) {
  Secondary secondary;
  start(configuration({secondary.address()}), patient()).tell_all();
  EXPECT_EQ(serial_of(next(secondary)), 10U);
}

TEST_F(NotifierTest, RemoteThatLeavesTheConfigurationIsForgotten) {
  Secondary leaves, stays;
  start(configuration({leaves.address(), stays.address()}, ", notify-delay: 1h"), patient());
  change();
  EXPECT_TRUE(parts_.run_until([&] { return status(stays) == "pending, 0 sent"; }));
  notifier_->configure(configuration({stays.address()}));
  EXPECT_EQ(status(stays), "pending, 0 sent") << "what was pending goes on";
  EXPECT_EQ(notifier_->status(name("@")).size(), 1U);
}

TEST_F(NotifierTest, RemoteThatComesByReloadIsToldOfWhatThereIs) {
  Secondary stays, comes;
  start(configuration({stays.address()}), patient());
  notifier_->configure(configuration({stays.address(), comes.address()}));
  EXPECT_EQ(serial_of(next(comes)), 10U);
  EXPECT_EQ(status(stays), "not yet") << "it is no news there";
}

TEST_F(NotifierTest, BacklogFollowsTheZonesThroughAReload) {
  Secondary secondary;
  start(configuration({secondary.address()}), patient()).tell_all();
  notifier_->configure(configuration({secondary.address()}));  // before anything could leave
  EXPECT_EQ(serial_of(next(secondary)), 10U);
}

}  // namespace notifier_test
}  // namespace pando::manager
