#include "config/effective.h"
#include "load_fixture.h"

namespace pando::config {
namespace dnssec_config_test {

using ::testing::HasSubstr;

constexpr std::string_view kZone = "zones: [{name: example, file: f, dnssec: ";

std::string zone_with(std::string_view policy, std::string_view before = "") {
  return std::string(before) + std::string(kZone) + std::string(policy) + "}]\n";
}

TEST(DnssecConfig, AZoneIsNotSignedUntilItIsWrittenDown) {
  const Settings settings = good("zones: [{name: example, file: f}]");
  EXPECT_FALSE(settings.zones[0].options->is_signed_here());
  EXPECT_FALSE(compile(*settings.zones[0].options, settings).is_signed_here);
}

TEST(DnssecConfig, ThePolicyDefaultIsThereAlways) {
  const Settings settings = good(zone_with("default"));
  EXPECT_TRUE(compile(*settings.zones[0].options, settings).is_signed_here);
  const auto policy = settings.dnssec_policy("default");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->algorithm, 13);
  EXPECT_EQ(policy->validity, std::chrono::days(14));
  const Settings own = good(zone_with(
      "default", "dnssec-policies: [{name: default, algorithm: ED25519, validity: 7d}]\n"));
  EXPECT_EQ(own.dnssec_policy("default")->algorithm, 15);
  EXPECT_EQ(own.dnssec_policy("default")->validity, std::chrono::days(7));
}

TEST(DnssecConfig, Nsec3IsOffOnOrWithOptOut) {
  EXPECT_EQ(good("").dnssec_policy("default")->nsec3, Nsec3Use::kOff);
  for (const auto& [word, use] : {std::pair("off", Nsec3Use::kOff), std::pair("on", Nsec3Use::kOn),
                                  std::pair("opt-out", Nsec3Use::kOptOut)}) {
    const Settings settings =
        good(fmt::format("dnssec-policies: [{{name: a, nsec3: {}}}]\n", word));
    EXPECT_EQ(settings.dnssec_policy("a")->nsec3, use);
    EXPECT_EQ(good(effective_server(settings)).dnssec_policies, settings.dnssec_policies);
  }
  EXPECT_THAT(errors_of("dnssec-policies: [{name: a, nsec3: {iterations: 5}}]\n"),
              HasSubstr("nsec3"));
}

TEST(DnssecConfig, AZoneCanLeaveThePolicyOfItsTemplate) {
  const Settings settings = good(
      "templates: [{name: default, dnssec: default}]\n"
      "zones: [{name: a, file: f}, {name: b, file: g, dnssec: off}]\n");
  EXPECT_TRUE(settings.zones[0].options->is_signed_here());
  EXPECT_FALSE(settings.zones[1].options->is_signed_here());
}

TEST(DnssecConfig, MistakesNameTheLine) {
  EXPECT_THAT(errors_of(zone_with("none")), HasSubstr("no policy is named 'none'"));
  EXPECT_THAT(errors_of("dnssec-policies: [{name: off}]\n"), HasSubstr("cannot have the name"));
  EXPECT_THAT(errors_of("dnssec-policies: [{name: a}, {name: a}]\n"), HasSubstr("there already"));
  EXPECT_THAT(errors_of("dnssec-policies: [{name: a, algorithm: RSASHA1}]\n"),
              HasSubstr("'RSASHA1' is none of"));
}

TEST(DnssecConfig, ASecondaryZoneMayHaveAPolicy) {
  const Settings settings = good("remotes: [{name: up, address: [192.0.2.1]}]\n"
                                 "zones: [{name: example, primaries: [up], dnssec: default}]\n");
  const ZoneOptions& options = *settings.zones[0].options;
  EXPECT_TRUE(options.is_secondary());
  EXPECT_TRUE(options.is_signed_here());
}

TEST(DnssecConfig, IsShownAsItCouldBeWritten) {
  const Settings settings = good(zone_with(
      "short", "dnssec-policies: [{name: short, algorithm: ECDSAP384SHA384, validity: 3d, make-keys: false}]\n"));
  const std::string shown = effective_server(settings);
  EXPECT_EQ(good(shown).dnssec_policies, settings.dnssec_policies) << shown;
  EXPECT_FALSE(settings.dnssec_policies.front().make_keys);
}

}  // namespace dnssec_config_test
}  // namespace pando::config
