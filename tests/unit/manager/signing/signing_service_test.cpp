#include "manager/signing/signing_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "manager/signing/keys/zone_keys.h"
#include "tests/unit/manager/io/failing_files.h"
#include "tests/unit/manager/start/manager_parts.h"

namespace pando::manager {
namespace signing_service_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::FailingFiles;
using testing::ManagerParts;
using testing::name;

constexpr std::uint64_t kStart = 1'800'000'000, kHour = 3600, kDay = 86400;
constexpr std::string_view kZone = "a.test.";
using Call = FailingFiles::Call;

/// A manager that signs a.test, on a host whose clock and disk the test moves.
class SigningServiceTest : public ::testing::Test {
 protected:
  SigningServiceTest() {
    auto& zones = parts_.zone_services;
    zones.signing = std::make_unique<SigningService>(
        SigningService::Parts{parts_.io, parts_.pool, parts_.network, files_,
                              *parts_.data->store, *parts_.data->slots, *parts_.services.committer,
                              *parts_.services.road},
        SigningClock::Sources{[this] { return host_; }, [this] { return steady_; },
                              [this] { return is_synchronised_; }},
        SigningService::Hooks{{[](const dns::Name&) {}, [](const dns::Name&) {}},
                              [](const dns::Name&) {}});
    parts_.services.committer->on_published([this](const PublishedVersion& version) {
      for (const PublishedZone& changed : version.changed)
        service().published(changed.zone, changed.is_whole);
    });
    parts_.reloader->allow();
  }
  void configure(const std::string& policy, bool has_zone = true) {
    parts_.configure(has_zone ? "  - {name: a.test, file: a.test.zone, dnssec: tested}\n" : "",
                     "dnssec-policies: [{name: tested" + policy + "}]\n");
    const auto reloaded = parts_.reload();
    EXPECT_TRUE(reloaded) << reloaded.error().text;
  }
  void serve(const std::string& policy = "", const std::string& records = "") {
    parts_.write_zone("a.test", 7, records);
    configure(policy);
    ASSERT_TRUE(wait([this] { return facts().signed_since != 0; })) << "it is signed, and looked at";
  }
  SigningService& service() { return *parts_.zone_services.signing; }
  SignedZones& zones() { return service().zones(); }
  SigningFacts facts() {
    const SigningFacts* const known = zones().facts_of(name(kZone));
    return known == nullptr ? SigningFacts() : *known;
  }
  SigningStage stage() { return zones().state_of(name(kZone)).stage; }
  zone::RecordView apex() { return parts_.zone(kZone).apex_record(); }
  bool wait(const std::function<bool()>& done) {
    return parts_.run_until([&] {
      service().check(at_);
      return done();
    });
  }
  void pass(std::uint64_t seconds) {
    host_ += seconds;
    steady_ += seconds;
    at_ += std::chrono::seconds(seconds);
  }
  void edit(const SignedZones::EditFacts& change) {
    const Status done = parts_.await<Status>([&](auto& place) {
      zones().edit_facts(name(kZone), change, [&place](const Status& edited) { place = edited; });
    });
    EXPECT_TRUE(done) << done.error().text;
  }
  [[nodiscard]] std::string folder() const {
    return key_folder(parts_.folder.path() + "/journal", name(kZone)).value();
  }
  [[nodiscard]] SigningFacts facts_on_disk() const {
    return read_signing_facts(native_files(), folder()).value();
  }
  void spoil_keys() {
    for (const auto& entry : fs::directory_iterator(folder()))
      if (entry.path().extension() == ".pem") fs::resize_file(entry.path(), 10);
    zones().read_again(name(kZone));
    ASSERT_TRUE(wait([this] { return zones().counts().unusable == 1; }));
  }

  std::uint64_t host_ = kStart, steady_ = 500;
  bool is_synchronised_ = false;
  std::chrono::steady_clock::time_point at_ = std::chrono::steady_clock::now();
  FailingFiles files_;
  ManagerParts parts_;
};

TEST_F(SigningServiceTest, AJumpOfTheClockBeginsTheWaitForCachesAnew) {
  serve(", propagation: 2h");
  EXPECT_EQ(stage(), SigningStage::kSpreading);
  EXPECT_EQ(facts().signed_since, kStart);
  host_ += kDay;
  is_synchronised_ = true;
  ASSERT_TRUE(wait([this] { return facts().signed_since == kStart + kDay; }));
  EXPECT_EQ(stage(), SigningStage::kSpreading) << "nobody knows how much of the wait is over";
  EXPECT_EQ(facts_on_disk().signed_since, kStart + kDay);
  pass(3 * kHour);
  ASSERT_TRUE(wait([this] { return stage() == SigningStage::kDsWanted; }));
}

TEST_F(SigningServiceTest, AJumpOfTheClockBeginsTheWaitForDsRecordsAnew) {
  serve();
  edit([](SigningFacts& known) {
    known.ds_seen = known.unsign_since = kStart;
    known.ds_gone = kStart;
  });
  EXPECT_EQ(stage(), SigningStage::kDsExpiring);
  host_ += 30 * kDay;
  is_synchronised_ = true;
  ASSERT_TRUE(wait([this] { return facts().ds_gone == kStart + 30 * kDay; }));
  EXPECT_EQ(stage(), SigningStage::kDsExpiring);
  EXPECT_NE(apex().find(dns::RRType::kDNSKEY).count(), 0U);
}

TEST_F(SigningServiceTest, AZoneThatGetsAnotherChainKeepsWhatItAsksOfItsParent) {
  serve(", propagation: 1s");
  pass(2 * kHour);
  ASSERT_TRUE(wait([this] { return apex().find(dns::RRType::kCDS).count() != 0; }));
  configure(", propagation: 1s, nsec3: on");
  ASSERT_TRUE(wait([this] { return apex().find(dns::RRType::kNSEC3PARAM).count() != 0; }));
  EXPECT_NE(apex().find(dns::RRType::kCDS).count(), 0U) << "in the first version with this chain";
  EXPECT_NE(apex().find(dns::RRType::kCDNSKEY).count(), 0U);
}

/// RFC 8767 §4: resolvers keep nothing for longer.
TEST_F(SigningServiceTest, NoWaitForCachesIsLongerThanAWeek) {
  serve("", "long 2000000 TXT x\n");
  EXPECT_EQ(facts().max_ttl, 7 * kDay);
  EXPECT_EQ(zones().state_of(name(kZone)).until, kStart + 7 * kDay + kHour);
}

TEST_F(SigningServiceTest, AnUnsignedZoneIsNotedWhenTheDiskTakesIt) {
  serve();
  edit([](SigningFacts& known) {
    known.ds_seen = known.unsign_since = kStart;
    known.ds_gone = kStart;
  });
  files_.fail = [](Call call, const std::string& path) -> Status {
    const bool is_facts = path.find("/facts") != std::string::npos;
    return is_facts && call == Call::kWrite ? Status(fail(Errc::kIo, "no space")) : Status();
  };
  pass(2 * kDay);
  ASSERT_TRUE(wait([this] { return apex().find(dns::RRType::kDNSKEY).count() == 0; }));
  for (int i = 0; i < 50; ++i) wait([] { return true; });
  EXPECT_EQ(facts_on_disk().unsigned_since, 0U);
  EXPECT_EQ(stage(), SigningStage::kUnsigning);
  files_.fail = [](Call, const std::string&) { return Status(); };
  pass(SigningWatch::kRetry.count());
  ASSERT_TRUE(wait([this] { return facts().is_unsigned(); }));
  EXPECT_EQ(stage(), SigningStage::kUnsigned);
  EXPECT_TRUE(facts_on_disk().is_unsigned());
}

TEST_F(SigningServiceTest, LateSignaturesOfAZoneWithoutItsKeysAreToldUntilItLeaves) {
  serve();
  spoil_keys();
  EXPECT_EQ(service().zones_late(), 0U) << "six days are left at least";
  pass(5 * kDay);
  ASSERT_TRUE(wait([this] { return service().zones_late() == 1; }));
  EXPECT_THAT(service().problem(name(kZone)), HasSubstr("keys cannot be used"));
  configure("", false);
  EXPECT_EQ(service().zones_late(), 0U);
}

TEST_F(SigningServiceTest, SignaturesOfAWrongFirstClockAreMadeAnew) {
  host_ = 60;
  serve();
  pass(10);
  host_ = kStart;
  is_synchronised_ = true;
  ASSERT_TRUE(wait([this] {
    return ZoneSigner::last_signature(parts_.zone(kZone), host_).made + 60 > kStart;
  }));
  pass(2 * kHour);
  const auto is_valid_now = [this] {
    const auto signer = zones().signer_of(name(kZone));
    const SignatureLook look = look_at_signatures(parts_.zone(kZone), **signer, {host_, host_});
    return look.due.empty() && look.first_end > host_;
  };
  EXPECT_TRUE(wait(is_valid_now));
}

TEST_F(SigningServiceTest, OtherKeysOfThePolicyAreNoted) {
  serve();
  const auto signer = zones().signer_of(name(kZone));
  ASSERT_TRUE(signer && *signer);
  const auto& keys = (*signer)->keys().all();
  EXPECT_EQ(layout_note({13}, keys), "");
  EXPECT_THAT(layout_note({15}, keys), HasSubstr("ED25519"));
  EXPECT_THAT(layout_note({13, true}, keys), HasSubstr("a KSK and a ZSK"));
}

TEST_F(SigningServiceTest, AnEditThatEndsAfterTheStopIsAnswered) {
  serve();
  std::optional<Status> done;
  zones().edit_facts(
      name(kZone), [](SigningFacts& known) { known.ds_seen = kStart; },
      [&done](const Status& edited) { done = edited; });
  service().stop();
  ASSERT_TRUE(parts_.run_until([&done] { return done.has_value(); }));
  EXPECT_TRUE(*done) << "it is durable";
  EXPECT_EQ(facts_on_disk().ds_seen, kStart);
}

/// A disk that fails at each step of a first key, or of its facts.
TEST_F(SigningServiceTest, AZoneIsSignedOnceTheDiskTakesItsKey) {
  parts_.write_zone("a.test", 7);
  int failures = 0;
  files_.fail = [&failures](Call call, const std::string& path) -> Status {
    const bool is_key = path.find(".pem") != std::string::npos && call == Call::kSync;
    if (!is_key) return {};
    ++failures;
    return fail(Errc::kIo, "sync: Input/output error");
  };
  configure("");
  ASSERT_TRUE(wait([this] { return zones().counts().unusable == 1; }));
  EXPECT_THAT(service().problem(name(kZone)), HasSubstr("Input/output error"));
  EXPECT_EQ(parts_.serial(kZone), 0U) << "it is not served unsigned";
  files_.fail = [](Call, const std::string&) { return Status(); };
  ASSERT_TRUE(wait([this] {
    pass(SignedZones::kRetry.count());  // a try may be under way, so one pause is not enough
    return zones().counts().unusable == 0;
  }));
  EXPECT_GT(failures, 0);
  EXPECT_NE(zones().facts_of(name(kZone)), nullptr);
}

}  // namespace signing_service_test
}  // namespace pando::manager
