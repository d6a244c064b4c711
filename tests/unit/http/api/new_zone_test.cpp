#include "http/api/new_zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pando::http {
namespace new_zone_test {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kDay = 1795651200;  // 2026-11-26

config::Remote remote(const std::string& name, const std::string& address) {
  config::Remote made;
  made.name = name;
  made.address = {Endpoint::from_text(address).value()};
  return made;
}

const std::vector<config::Remote> kRemotes{remote("one", "192.0.2.1"), remote("two", "192.0.2.2@5353"),
                                           remote("six", "2001:db8::6")};

Result<NewZone> read(const json& body) { return read_new_zone(body.dump(), kRemotes, kDay); }

std::string why_not(json members) {
  json body{{"name", "a.test."}, {"kind", "Native"}};
  body.update(members);
  const auto zone = read(body);
  return zone ? "" : zone.error().text;
}

json rrset(const std::string& name, const std::string& type, const std::string& content) {
  return {{"name", name}, {"type", type}, {"ttl", 60}, {"records", {{{"content", content}}}}};
}

/// What a PUT chooses: signing and the names of the primaries, or why it is refused; "stay" for no
/// primaries.
std::string put(const json& body, bool secondary) {
  const auto done =
      read_zone_change(body.dump(), dns::Name::from_text("a.test.").value(), secondary, kRemotes);
  if (!done) return done.error().text;
  std::string text;
  if (done->is_signed) text = *done->is_signed ? "sign " : "do not sign ";
  if (!done->primaries) return text + "stay";
  for (const std::string& name : *done->primaries) text += name + " ";
  return text;
}

TEST(ZoneChange, MembersWithoutAPlaceHereChangeNothing) {
  // As Terraform's provider sends it.
  EXPECT_EQ(put({{"name", "A.test."}, {"kind", "Native"}, {"account", "admin"},
                 {"soa_edit_api", "DEFAULT"}}, false), "stay");
  EXPECT_EQ(put(json::object(), false), "stay");
  EXPECT_EQ(put({{"kind", "Primary"}, {"masters", json::array()}, {"catalog", ""}}, false), "stay");
  EXPECT_EQ(put({{"kind", "Slave"}}, true), "stay");
}

TEST(ZoneChange, APrimaryZoneIsSigned) {
  EXPECT_EQ(put({{"dnssec", true}}, false), "sign stay");
  EXPECT_EQ(put({{"dnssec", false}, {"kind", "Native"}}, false), "do not sign stay");
  EXPECT_EQ(put({{"dnssec", nullptr}}, false), "stay");
  EXPECT_EQ(put({{"dnssec", false}}, true), "stay");
}

TEST(ZoneChange, ASecondaryZoneGetsOtherPrimaries) {
  EXPECT_EQ(put({{"masters", {"192.0.2.1"}}}, true), "one ");
  const json both{"192.0.2.2:5353", "2001:db8::6", "192.0.2.2:5353"};
  EXPECT_EQ(put({{"kind", "secondary"}, {"masters", both}}, true), "two six ");
  EXPECT_THAT(put({{"masters", {"192.0.2.9"}}}, true), HasSubstr("no remote"));
  EXPECT_THAT(put({{"masters", json::array()}}, true), HasSubstr("needs 'masters'"));
  EXPECT_THAT(put({{"masters", "192.0.2.1"}}, true), HasSubstr("not an Array"));
  EXPECT_THAT(put({{"masters", {"192.0.2.1"}}}, false), HasSubstr("no 'masters'"));
}

TEST(ZoneChange, AZoneKeepsItsNameAndKind) {
  EXPECT_THAT(put({{"kind", "Slave"}, {"masters", {"192.0.2.1"}}}, false), HasSubstr("cannot become"));
  EXPECT_THAT(put({{"kind", "Native"}}, true), HasSubstr("cannot become"));
  EXPECT_THAT(put({{"kind", "Producer"}}, false), HasSubstr("not possible here"));
  EXPECT_THAT(put({{"kind", 7}}, false), HasSubstr("kind"));
  EXPECT_THAT(put({{"name", "b.test."}}, false), HasSubstr("name of a zone"));
  EXPECT_THAT(put({{"name", "a.test"}}, false), HasSubstr("not canonical"));
  EXPECT_THAT(put({{"dnssec", true}}, true), HasSubstr("is set in the configuration"));
  EXPECT_THAT(put({{"rrsets", {rrset("a.test.", "A", "192.0.2.1")}}}, false), HasSubstr("PATCH"));
  EXPECT_THAT(put(json::array(), false), HasSubstr("Object"));
  EXPECT_EQ(read_zone_change("{", dns::Name(), false, kRemotes).error().code, Errc::kCorrupt);
}

TEST(NewZone, AnEmptyZoneHasApexRecords) {
  const auto zone = read({{"name", "A.test."},
                          {"kind", "Native"},
                          {"nameservers", {"ns1.a.test.", "ns2.other.test."}}});
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ(zone->name, dns::Name::from_text("a.test.").value());
  EXPECT_EQ(zone->content,
            "A.test. 3600 IN SOA ns1.a.test. hostmaster.A.test. 2026112601 10800 3600 604800 3600\n"
            "A.test. 3600 IN NS ns1.a.test.\n"
            "A.test. 3600 IN NS ns2.other.test.\n");
  EXPECT_THAT(zone->primaries, ElementsAre());
}

/// Its first line may lack an owner and a TTL, which are those of a server then.
TEST(NewZone, ATextComesBehindItsServers) {
  json body{{"name", "a.test."},
            {"kind", "Native"},
            {"nameservers", {"ns1.a.test.", "ns2.a.test."}},
            {"zone", " SOA x"}};
  const auto zone = read(body);
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ(zone->content,
            "a.test. 3600 IN NS ns1.a.test.\na.test. 3600 IN NS ns2.a.test.\n SOA x\n");
  EXPECT_EQ(zone->lines_before, 2U);
  body["nameservers"] = json::array();
  EXPECT_EQ(read(body).value().lines_before, 0U);
  body.erase("zone");
  EXPECT_EQ(read(body).value().lines_before, std::nullopt);
}

TEST(NewZone, WithoutAServerPowerDnssNameStandsIn) {
  const auto zone = read({{"name", "."}, {"kind", "master"}, {"nameservers", json::array()}});
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ(zone->content, ". 3600 IN SOA a.misconfigured.dns.server.invalid. hostmaster. 2026112601 "
                           "10800 3600 604800 3600\n"
                           ". 3600 IN NS a.misconfigured.dns.server.invalid.\n");
}

/// Panels add a zone first and its servers then; a zone without any would not be served.
TEST(NewZone, ServersAmongTheRecordsAreEnough) {
  const auto content = [](const json& added) {
    return read({{"name", "a.test."}, {"kind", "Native"}, {"rrsets", {added}}}).value().content;
  };
  constexpr const char* kStandIn = "a.test. 3600 IN NS a.misconfigured.dns.server.invalid.\n";
  EXPECT_THAT(content(rrset("a.test.", "NS", "ns.b.test.")), Not(HasSubstr(kStandIn)));
  EXPECT_THAT(content(rrset("sub.a.test.", "NS", "ns.b.test.")), HasSubstr(kStandIn));
}

TEST(NewZone, RecordsComeWithTheZone) {
  const std::string soa = "ns.a.test. admin.a.test. 7 1 2 3 4";
  const auto zone = read({{"name", "a.test."},
                          {"kind", "Primary"},
                          {"rrsets", {rrset("a.test.", "SOA", soa), rrset("w.a.test.", "A", "192.0.2.7"),
                                      rrset("t.a.test.", "TXT", "\"a; b\"")}}});
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ(zone->content, "a.test. 3600 IN NS a.misconfigured.dns.server.invalid.\n"
                           "a.test. 60 IN SOA " + soa + "\nw.a.test. 60 IN A 192.0.2.7\n" +
                               "t.a.test. 60 IN TXT \"a; b\"\n");
}

TEST(NewZone, TextIsTakenAsItIs) {
  const auto zone =
      read({{"name", "a.test."}, {"kind", "Native"}, {"zone", "@ SOA ..."}, {"rrsets", json::array()}});
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ(zone->content, "@ SOA ...\n");
}

TEST(NewZone, ASecondarysPrimariesAreRemotes) {
  const auto zone = read({{"name", "a.test."},
                          {"kind", "Slave"},
                          {"nameservers", json::array()},
                          {"masters", {"192.0.2.1", "192.0.2.2:5353", "2001:db8::6", "[2001:db8::6]:53"}}});
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ(zone->content, "");
  EXPECT_THAT(zone->primaries, ElementsAre("one", "two", "six"));
}

TEST(NewZone, WhatIsWrongIsTold) {
  EXPECT_EQ(read_new_zone("{", kRemotes, kDay).error().code, Errc::kCorrupt);
  EXPECT_EQ(read_new_zone("[]", kRemotes, kDay).error().code, Errc::kInvalid);
  EXPECT_THAT(why_not({{"name", "a.test"}}), HasSubstr("'a.test' is not canonical"));
  EXPECT_THAT(why_not({{"name", "a..test."}}), HasSubstr("a..test."));
  EXPECT_THAT(why_not({{"name", 7}}), HasSubstr("Key 'name'"));
  EXPECT_THAT(why_not({{"kind", "Producer"}}), HasSubstr("kind 'Producer'"));
  EXPECT_THAT(why_not({{"kind", nullptr}}), HasSubstr("Key 'kind'"));
  EXPECT_THAT(why_not({{"dnssec", true}, {"kind", "Slave"}, {"masters", {"192.0.2.1"}}}),
              HasSubstr("'dnssec'"));
  EXPECT_TRUE(read({{"name", "a.test."}, {"kind", "Native"}, {"dnssec", true}})->is_signed);
  EXPECT_EQ(why_not({{"dnssec", false}, {"nsec3param", ""}, {"soa_edit_api", "DEFAULT"}}), "");
  EXPECT_THAT(why_not({{"nsec3param", "1 0 0 -"}}), HasSubstr("'nsec3param'"));
  EXPECT_THAT(why_not({{"catalog", "c.test."}}), HasSubstr("'catalog'"));
  EXPECT_THAT(why_not({{"nameservers", {"ns1"}}}), HasSubstr("'ns1' is not canonical"));
  EXPECT_THAT(why_not({{"nameservers", "ns1."}}), HasSubstr("'nameservers' is not an Array"));
  EXPECT_THAT(why_not({{"nameservers", {7}}}), HasSubstr("not a String"));
  EXPECT_THAT(why_not({{"rrsets", 7}}), HasSubstr("'rrsets' is not an Array"));
  EXPECT_THAT(why_not({{"rrsets", {7}}}), HasSubstr("Key"));
  EXPECT_THAT(why_not({{"rrsets", {rrset("b.test.", "A", "192.0.2.1")}}}), HasSubstr("out of zone"));
  EXPECT_THAT(why_not({{"rrsets", {rrset("a.test.", "A", "192.0.2.1")}}, {"zone", "x"}}),
              HasSubstr("rrsets AND zone"));
  EXPECT_THAT(why_not({{"zone", 7}}), HasSubstr("'zone' is not a String"));
  EXPECT_THAT(why_not({{"zone", "@ SOA ...\n$Generate 1-9 h$ A 192.0.2.1"}}),
              HasSubstr("$GENERATE"));
}

TEST(NewZone, WhatASecondaryCannotHaveIsTold) {
  const auto refused = [](json members) {
    members.update({{"kind", "Secondary"}});
    return why_not(members);
  };
  EXPECT_THAT(refused(json::object()), HasSubstr("needs 'masters'"));
  EXPECT_THAT(refused({{"masters", {"192.0.2.9"}}}), HasSubstr("no remote"));
  EXPECT_THAT(refused({{"masters", {"192.0.2.1:5353"}}}), HasSubstr("no remote"));
  EXPECT_THAT(refused({{"masters", {"example"}}}), HasSubstr("no address"));
  EXPECT_THAT(refused({{"masters", {"192.0.2.1"}}, {"zone", "@ SOA"}}), HasSubstr("MUST NOT"));
  EXPECT_THAT(refused({{"masters", {"192.0.2.1"}}, {"nameservers", {"ns."}}}), HasSubstr("MUST NOT"));
}

}  // namespace new_zone_test
}  // namespace pando::http
