#include "manager/change/whole_transfer.h"

#include <gmock/gmock.h>

#include "manager/change/zone_signers.h"
#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/dnssec/two_zones.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace whole_transfer_test {

using ::testing::SizeIs;
using testing::name;
using testing::Parts;
using testing::record;
using Known = std::optional<dns::Serial>;

/// Has one key for "example."; without a signer the zone has no policy either.
class FakeSigners final : public ZoneSigners {
 public:
  [[nodiscard]] Result<ZoneSignerPtr> signer_of(dns::NameView) const override { return signer; }
  [[nodiscard]] std::optional<config::SerialPolicy> unsigning(dns::NameView) const override {
    return std::nullopt;
  }
  [[nodiscard]] bool has(dns::NameView) const override { return signer != nullptr; }
  bool begin_anew(const dns::Name&, std::function<void(const Status&)>) override { return false; }
  [[nodiscard]] std::uint64_t now() const override { return two_zones::kNow; }
  void when_known(dns::NameView, bool, Known known) override {
    ++asked;
    known(signer);
  }

  ZoneSignerPtr signer = std::make_shared<ZoneSigner>(
      name("@"), zone::SigningKeys::make(two_zones::keys_of({257})).value(),
      ZoneSigner::Options());
  int asked = 0;
};

std::string soa(unsigned serial) {
  return fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
}

class WholeTransfer : public ::testing::Test {
 protected:
  WholeTransfer() { parts_.road.sign_by(signers_); }

  ZoneChange whole(unsigned serial, const std::vector<std::string>& more = {}) {
    shm::Transaction transaction = parts_.zone.store().begin_private();
    zone::ZoneBuilder builder(name("@"), transaction);
    std::vector<std::string> lines = testing::kBasicZone;
    lines.front() = soa(serial);
    lines.insert(lines.end(), more.begin(), more.end());
    for (const std::string& line : lines) {
      const zone::Record one = record(line);
      EXPECT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata));
    }
    ZoneChange change;
    change.zone = name("@");
    change.source = ChangeSource::kTransfer;
    change.is_whole = change.may_be_changeset = true;
    change.content = WholeZone{shm::test::must(builder.finish()), std::move(transaction)};
    return change;
  }
  std::shared_ptr<std::optional<Result<ChangeOutcome>>> submit(ZoneChange change) {
    auto result = std::make_shared<std::optional<Result<ChangeOutcome>>>();
    change.done = [result](const Result<ChangeOutcome>& outcome) { *result = outcome; };
    parts_.road.submit(std::move(change));
    return result;
  }
  Result<ChangeOutcome> run(ZoneChange change) {
    auto result = submit(std::move(change));
    EXPECT_TRUE(parts_.run_until([&] { return result->has_value(); }));
    return std::move(**result);
  }
  [[nodiscard]] zone::ZoneView zone() { return parts_.committer.current().zone_at(name("@")); }
  /// Those of kind kSigned, with the served serials.
  std::vector<JournalRecord> signed_records() {
    std::vector<JournalRecord> found;
    for (JournalRecord& one : parts_.journalled())
      if (one.kind == RecordKind::kSigned) found.push_back(std::move(one));
    return found;
  }
  Bytes signature_of(std::string_view owner, dns::RRType type) {
    Bytes found;
    zone().record_at(name(owner)).find(type).for_each_signature(
        [&](ByteView octets) { found.assign(octets.begin(), octets.end()); });
    return found;
  }

  Parts parts_;
  FakeSigners signers_;
};

TEST_F(WholeTransfer, IsSignedAndHasTwoSerials) {
  ASSERT_TRUE(run(whole(20)));
  EXPECT_EQ(zone().serial().value, 20U) << "ahead of ours";
  EXPECT_EQ(zone::primary_serial(zone()), Known({20}));
  EXPECT_EQ(zone().denial(), zone::Denial::kNsec);
  ZoneChange second = whole(5, {"new 60 A 192.0.2.9"});
  second.may_be_changeset = false;
  ASSERT_TRUE(run(std::move(second)));
  EXPECT_EQ(zone().serial().value, 21U) << "5 would go back";
  EXPECT_EQ(zone::primary_serial(zone()), Known({5}));
  const auto records = signed_records();
  ASSERT_THAT(records, SizeIs(2));
  for (const JournalRecord& one : records) {
    EXPECT_TRUE(is_whole_signing(one));
    EXPECT_EQ(one.from, one.to) << "no other data lead to these";
  }
  EXPECT_EQ(shm::test::must(decode_signed(records[0].payload)).primary_serial, Known({20}));
  EXPECT_EQ(shm::test::must(decode_signed(records[1].payload)).primary_serial, Known({5}));
}

TEST_F(WholeTransfer, LittleThatIsNewIsAChangeset) {
  ASSERT_TRUE(run(whole(20)));
  const Bytes kept = signature_of("ns1", dns::RRType::kA);
  ASSERT_TRUE(run(whole(25, {"new 60 A 192.0.2.9", "@ 60 CDS 0 0 0 00"})));
  EXPECT_EQ(signature_of("ns1", dns::RRType::kA), kept);
  EXPECT_FALSE(signature_of("new", dns::RRType::kA).empty());
  EXPECT_FALSE(zone().apex_record().find(dns::RRType::kCDS));
  EXPECT_EQ(zone::primary_serial(zone()), Known({25}));
  const SignedRecord last = shm::test::must(decode_signed(signed_records().back().payload));
  EXPECT_EQ(last.kind, RecordKind::kTransfer);
  ZoneChange ordered = whole(25);
  ordered.may_be_changeset = false;
  const auto outcome = run(std::move(ordered));
  ASSERT_TRUE(outcome && outcome->had_data);
  EXPECT_FALSE(zone().record_at(name("new")));
  EXPECT_TRUE(is_whole_signing(signed_records().back()));
}

TEST_F(WholeTransfer, TellsWhatWasLeftOut) {
  const auto outcome = run(whole(20, {"@ 60 CDS 0 0 0 00", "www 60 NSEC www A"}));
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->left_out, 2U);
  const auto again = run(whole(21, {"@ 60 CDS 0 0 0 00"}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->left_out, 1U);
}

/// Two versions of one serial would differ, and secondaries would not see it.
TEST_F(WholeTransfer, IsSignedAgainWhenTheZoneMovesMeanwhile) {
  const auto received = submit(whole(11));
  const auto moved = parts_.submit(parts_.changes({soa(10)}, {soa(11), "update 60 A 192.0.2.9"}));
  ASSERT_TRUE(parts_.run_until([&] { return received->has_value(); }));
  ASSERT_TRUE(*moved && **received);
  EXPECT_EQ(signers_.asked, 2);
  EXPECT_EQ(zone().serial().value, 12U);
  EXPECT_EQ(zone::primary_serial(zone()), Known({11}));
  EXPECT_FALSE(zone().record_at(name("update")));
}

TEST_F(WholeTransfer, OfAZoneThatLostItsPolicyIsRefused) {
  ASSERT_TRUE(run(whole(20)));
  signers_.signer = nullptr;
  const auto outcome = run(whole(21));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kUnsupported);
  EXPECT_EQ(zone().denial(), zone::Denial::kNsec);
}

TEST_F(WholeTransfer, EndsTheSerialsOfAnUnsignedZoneWhenThePrimaryIsAhead) {
  signers_.signer = nullptr;
  ASSERT_TRUE(parts_.edit(
      [](zone::Draft& draft) { return draft.put_primary_serial(name("@"), dns::Serial{5}); }));
  ASSERT_TRUE(run(whole(6)));
  EXPECT_EQ(zone().serial().value, 11U);
  EXPECT_EQ(zone::primary_serial(zone()), Known({6}));
  ASSERT_TRUE(run(whole(50)));
  EXPECT_EQ(zone().serial().value, 50U);
  EXPECT_EQ(zone::primary_serial(zone()), std::nullopt);
}

TEST_F(WholeTransfer, WithAWrongDigestIsRefused) {
  ZoneChange change = whole(20, {"@ 60 ZONEMD 20 1 1 " + std::string(96, '0')});
  change.checks_digest = true;
  const auto outcome = run(std::move(change));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kInvalid);
  EXPECT_EQ(zone().serial().value, 10U);
}

}  // namespace whole_transfer_test
}  // namespace pando::manager
