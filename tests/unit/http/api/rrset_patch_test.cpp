#include "http/api/rrset_patch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dns/rdata/rdata.h"

namespace pando::http {
namespace rrset_patch_test {

using Kind = RRsetChange::Kind;
using ::testing::HasSubstr;
using ::testing::StartsWith;

dns::Name named(std::string_view text) { return dns::Name::from_text(text).value(); }

Result<std::vector<RRsetChange>> patch(std::string_view rrsets) {
  return read_patch(fmt::format(R"({{"rrsets": [{}]}})", rrsets), named("example.test."));
}

/// The error of an RRset www.example.test. A with these members.
std::string refused(std::string_view members) {
  const auto changes = patch(
      fmt::format(R"({{"name": "www.example.test.", "type": "A", "changetype": "REPLACE", {}}})",
                  members));
  return changes ? "taken" : changes.error().text;
}

std::string records(std::string_view type, std::string_view content) {
  const auto changes = patch(fmt::format(
      R"({{"name": "www.example.test.", "type": "{}", "ttl": 60, "changetype": "REPLACE",
           "records": [{{"content": "{}"}}]}})",
      type, content));
  if (!changes) return changes.error().text;
  return dns::rdata_to_text(changes->at(0).type, changes->at(0).rdatas.at(0));
}

TEST(Patch, HasChangesInTheirOrder) {
  const auto changes = patch(R"(
      {"name": "WWW.example.test.", "type": "a", "changetype": "replace", "ttl": "60", "comments": [],
       "records": [{"content": "192.0.2.1", "disabled": false}, {"content": "192.0.2.2"}]},
      {"name": "*.example.test.", "type": "TXT", "changetype": "DELETE", "ttl": 5,
       "records": [{"content": "not read", "disabled": true}]},
      {"name": "example.test.", "type": "TYPE65280", "changetype": "EXTEND",
       "records": [{"content": "\\# 1 00"}]},
      {"name": "a.example.test.", "type": "MX", "changetype": "PRUNE", "ttl": 7,
       "records": [{"content": "10 mx.example.test."}]})");
  ASSERT_TRUE(changes) << changes.error().text;
  ASSERT_EQ(changes->size(), 4U);
  EXPECT_EQ((*changes)[0], (RRsetChange{Kind::kReplace, named("www.example.test."),
                                        dns::RRType::kA, 60, {{192, 0, 2, 1}, {192, 0, 2, 2}}}));
  EXPECT_EQ((*changes)[1],
            (RRsetChange{Kind::kDelete, named("*.example.test."), dns::RRType::kTXT, {}, {}}));
  EXPECT_EQ((*changes)[2].rdatas, std::vector<Bytes>{Bytes{0}});
  EXPECT_EQ((*changes)[2].ttl, std::nullopt);
  EXPECT_EQ((*changes)[3].kind, Kind::kPrune);
}

TEST(Patch, AnEmptyListOfRecordsDeletes) {
  const auto changes =
      patch(R"({"name": "example.test.", "type": "A", "changetype": "REPLACE", "records": []})");
  ASSERT_TRUE(changes) << changes.error().text;
  EXPECT_TRUE(changes->at(0).rdatas.empty());
  EXPECT_TRUE(patch("")->empty());
}

TEST(Patch, TextThatIsNoJsonIsToldApart) {
  const dns::Name zone = named("example.test.");
  for (const std::string& text :
       {std::string(""), std::string("{"), std::string("{\"rrsets\": [}"), std::string("\xFF\xFE"),
        std::string("{\"rrsets\": []} x"), std::string("{\"a\": \"\xC3\x28\"}"),
        std::string(100'000, '['), std::string(100'000, '{')})
    EXPECT_EQ(read_patch(text, zone).error().code, Errc::kCorrupt) << text.substr(0, 20);
  std::string deep = "{\"rrsets\": ";
  deep += std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_EQ(read_patch(deep, zone).error().code, Errc::kCorrupt);
  for (const char* text : {"[]", "1", "null", "{}", "{\"rrsets\": null}", "{\"rrsets\": {}}"})
    EXPECT_EQ(read_patch(text, zone).error().text, "No rrsets given in update request") << text;
}

TEST(Patch, ChangesOutsideOfTheRulesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "Key 'changetype' not present or not a String"},
      {R"({"name": "a.example.test.", "type": "A"})", "Key 'changetype' not present"},
      {R"({"name": "a.example.test.", "type": "A", "changetype": 1})", "Key 'changetype'"},
      {R"({"name": "a.example.test.", "type": "A", "changetype": "ADD"})",
       "Changetype 'ADD' is not a valid value"},
      {R"({"type": "A", "changetype": "DELETE"})", "Key 'name' not present or not a String"},
      {R"({"name": "a.example.test.", "changetype": "DELETE"})", "Key 'type' not present"},
      {R"({"name": "a.example.test", "type": "A", "changetype": "DELETE"})",
       "DNS Name 'a.example.test' is not canonical"},
      {R"({"name": "a..example.test.", "type": "A", "changetype": "DELETE"})",
       "'a..example.test.': "},
      {R"({"name": "a.example.test.", "type": "ALIAS", "changetype": "DELETE"})",
       "RRset a.example.test. IN 'ALIAS': unknown type given"},
      {R"({"name": "a.example.test.", "type": "ANY", "changetype": "DELETE"})",
       "unknown type given"},
      {R"({"name": "aexample.test.", "type": "A", "changetype": "DELETE"})",
       "RRset aexample.test. IN A: Name is out of zone"},
      {R"({"name": "a.example.test.", "type": "A", "changetype": "DELETE"},
          {"name": "A.example.test.", "type": "TYPE1", "changetype": "DELETE"})",
       "Duplicate RRset A.example.test. IN A with changetype: DELETE"},
  };
  for (const auto& [rrsets, expected] : cases) {
    const auto changes = patch(rrsets);
    ASSERT_FALSE(changes) << rrsets;
    EXPECT_EQ(changes.error().code, Errc::kInvalid);
    EXPECT_THAT(changes.error().text, HasSubstr(expected));
  }
}

TEST(Patch, RecordsOutsideOfTheRulesAreRefused) {
  EXPECT_EQ(refused(R"("ttl": 1)"), "No change for RRset www.example.test. IN A");
  EXPECT_EQ(refused(R"("records": {})"), "No change for RRset www.example.test. IN A");
  EXPECT_EQ(refused(R"("comments": [{"content": "x"}])"),
            "Hosting backend does not support editing comments.");
  EXPECT_EQ(refused(R"("comments": [])"), "taken");
  for (const char* ttl : {"-1", "1.5", "2147483648", "1e100", "\"x\"", "\"1x\"", "[]", "true",
                          "99999999999999999999"})
    EXPECT_EQ(refused(fmt::format(R"("ttl": {}, "records": [])", ttl)),
              "Key 'ttl' is no Integer from 0 to 2147483647")
        << ttl;
  const auto record = [](std::string_view text) {
    return refused(fmt::format(R"("ttl": 60, "records": [{}])", text));
  };
  EXPECT_EQ(refused(R"("records": [{"content": "192.0.2.1"}])"),
            "Key 'ttl' not present or not an Integer");
  EXPECT_EQ(record("1"), "Key 'content' not present or not a String");
  EXPECT_EQ(record(R"({"content": 7})"), "Key 'content' not present or not a String");
  EXPECT_THAT(record(R"({"content": "no address"})"),
              StartsWith("Record www.example.test./A 'no address': "));
  EXPECT_THAT(record(R"({"content": "192.0.2.1", "disabled": true})"), HasSubstr("disabled"));
  EXPECT_THAT(record(R"({"content": "192.0.2.1", "disabled": "no"})"), HasSubstr("not a Bool"));
  EXPECT_THAT(record(R"({"content": "192.0.2.1", "priority": 1})"), HasSubstr("not allowed"));
  EXPECT_EQ(record(R"({"content": "192.0.2.1"}, {"content": "192.0.2.1"})"),
            "RRset www.example.test. IN A: duplicate record '192.0.2.1'");
  EXPECT_LT(record(fmt::format(R"({{"content": "{}"}})", std::string(100'000, 'x'))).size(), 500U);
}

/// A name that lacks its dot would silently get the zone's name; PowerDNS refuses it.
TEST(Patch, DataHasAbsoluteNamesAndNoSyntaxOfFiles) {
  EXPECT_EQ(records("CNAME", "a.example.test."), "a.example.test.");
  EXPECT_THAT(records("CNAME", "a.example.test"), HasSubstr("a name needs a final dot"));
  EXPECT_THAT(records("CNAME", "@"), HasSubstr("a name needs a final dot"));
  EXPECT_THAT(records("MX", "10 mx"), HasSubstr("a name needs a final dot"));
  EXPECT_EQ(records("TXT", R"x(\"v=DKIM1\\; k=rsa;\" \"(b)\")x"),
            R"x("v=DKIM1; k=rsa;" "(b)")x");
  EXPECT_THAT(records("TXT", "a;b"), HasSubstr("invalid character '\\059'"));
  EXPECT_THAT(records("TXT", "a (b"), HasSubstr("invalid character '\\040'"));
  EXPECT_THAT(records("TXT", R"(\"a\nb\")"), HasSubstr("invalid character '\\010'"));
  EXPECT_THAT(records("TXT", R"(\"a)"), HasSubstr("quote without an end"));
  EXPECT_EQ(records("TXT", R"(\"\u00fc\")"), R"("\195\188")");
  EXPECT_THAT(records("CNAME", ""), HasSubstr("Record www.example.test./CNAME '': "));
}

TEST(Patch, LongTextIsCut) {
  const auto quoted = [](const std::string& text) { return "\\\"" + text + "\\\""; };
  const auto a = [](std::size_t count) { return std::string(count, 'a'); };
  const std::string whole = "\"" + a(255) + "\"";
  EXPECT_EQ(records("TXT", quoted(a(255))), whole);
  EXPECT_EQ(records("TXT", quoted(a(256))), whole + " \"a\"");
  EXPECT_EQ(records("SPF", quoted(a(511)) + " " + quoted("b")),
            whole + " " + whole + " \"a\" \"b\"");
  EXPECT_EQ(records("TXT", quoted(a(254) + "\\\\065" + "b")), "\"" + a(254) + "A\" \"b\"");
  EXPECT_EQ(records("TXT", quoted(a(254) + "\\\\;" + "b")), "\"" + a(254) + ";\" \"b\"");
  EXPECT_THAT(records("CAA", "0 issue " + quoted(a(70'000))), HasSubstr("Record "));
}

TEST(Patch, TypesWithOneRecordHaveOne) {
  EXPECT_THAT(
      patch(R"({"name": "www.example.test.", "type": "CNAME", "ttl": 1, "changetype": "REPLACE",
                "records": [{"content": "a."}, {"content": "b."}]})")
          .error()
          .text,
      HasSubstr("only one record allowed"));
  for (const char* list : {"", R"({"content": "192.0.2.1"}, {"content": "192.0.2.2"})"})
    EXPECT_THAT(patch(fmt::format(R"({{"name": "www.example.test.", "type": "A",
                          "changetype": "EXTEND", "records": [{}]}})", list))
                    .error()
                    .text,
                HasSubstr("exactly one record"));
}

TEST(Patch, TheNumberOfChangesIsBounded) {
  std::string list;
  for (std::size_t i = 0; i < kMaxChanges; ++i)
    list += fmt::format(R"({}{{"content": "10.0.{}.{}"}})", i == 0 ? "" : ",", i / 256, i % 256);
  EXPECT_THAT(refused(fmt::format(R"("ttl": 1, "records": [{}])", list)),
              HasSubstr("more than 20000 changes"));
  list.resize(list.rfind(",{"));  // with the RRset itself it is the last one that fits
  EXPECT_EQ(refused(fmt::format(R"("ttl": 1, "records": [{}])", list)), "taken");
}

}  // namespace rrset_patch_test
}  // namespace pando::http
