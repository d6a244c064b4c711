#include "worker/answer/answer.h"

#include <gtest/gtest.h>

#include <string>

#include "dns/message/message.h"
#include "tests/scenario/response.h"
#include "tests/scenario/zone_store.h"
#include "worker/answer/render.h"
#include "worker/answer/resolve.h"

namespace pando::worker {
namespace answer_test {

dns::Name name(const std::string& text) { return *dns::Name::from_text(text); }

/// The longest legal name: three labels of 63 octets and one of 61.
dns::Name longest_name() {
  const std::string label(63, 'x');
  return name(label + "." + label + "." + label + "." + std::string(61, 'x') + ".");
}

TEST(Owner, JoinsAStoredNameWithItsApex) {
  const dns::Name apex = name("example.");
  const Bytes relative = {3, 'w', 'w', 'w'};
  dns::Name scratch;
  EXPECT_EQ(Owner(relative, apex).name(scratch), name("www.example.").view());
  EXPECT_EQ(Owner({}, apex).name(scratch), apex.view());
}

TEST(Answer, KeepsTheLongestNameForEachStepOfAChain) {
  const auto answer = std::make_unique<Answer>();
  const dns::Name longest = longest_name();
  ASSERT_EQ(longest.size(), dns::kMaxNameOctets);
  for (std::size_t i = 0; i < kMaxChain; ++i) EXPECT_EQ(answer->keep(longest), longest.view());
}

TEST(Answer, SaysWhenAListIsFull) {
  EntryList<2> list;
  EXPECT_TRUE(list.push({}));
  EXPECT_TRUE(list.push({}));
  EXPECT_FALSE(list.push({}));
  EXPECT_EQ(list.size(), 2U);
}

/// A zone with one delegation to `servers` name servers below it, each with two addresses.
std::string crowded_zone(int servers) {
  std::string text = "$TTL 60\n@ SOA ns.other. host 1 1 1 1 1\n@ NS ns.other.\n";
  for (int i = 0; i < servers; ++i) {
    const std::string host = "n" + std::to_string(i) + ".sub";
    text += "sub NS " + host + "\n" + host + " A 192.0.2.1\n" + host + " AAAA 2001:db8::1\n";
  }
  return text;
}

scenario::Response answer_of(const std::string& zone_text, const std::string& qname) {
  const scenario::ZoneStore store({{"example.", "", zone_text, true}}, "");
  const dns::Question question{name(qname), dns::RRType::kA, dns::RRClass::kIN};
  const auto answer = std::make_unique<Answer>();
  dns::Nsec3Hasher hasher;
  resolve(choose_zone(store.view(), question.name, question.type), question, {}, hasher, *answer);
  std::vector<std::uint8_t> space(65535);
  dns::MessageWriter writer(space, space.size());
  writer.put_header({});
  EXPECT_TRUE(writer.put_question(question.name, question.type, question.rr_class));
  render(*answer, question, writer);
  return scenario::read_response(writer.finish());
}

TEST(Referral, SendsAllGlueOf128NameServers) {
  const auto response = answer_of(crowded_zone(128), "www.sub.example.");
  EXPECT_EQ(response.head, "NOERROR");
  EXPECT_EQ(response.sections[2].size(), 256U);
}

// RFC 9471 §3.1: what does not fit must not go missing silently, whatever the reason.
TEST(Referral, SetsTcWhenThereIsMoreGlueThanAnAnswerHolds) {
  const auto response = answer_of(crowded_zone(129), "www.sub.example.");
  EXPECT_EQ(response.head, "NOERROR tc");
  EXPECT_EQ(response.sections[2].size(), 256U);
}

TEST(Dname, TargetOfExactly255OctetsIsFollowedAndOneMoreIsNot) {
  const std::string label(63, 'x');
  const std::string target = label + "." + label + "." + label;  // 192 octets without the root
  const std::string zone = "$TTL 60\n@ SOA ns.other. host 1 1 1 1 1\n@ NS ns.other.\nd DNAME " +
                           target + ".example.\n";  // 201 octets: 54 are left
  EXPECT_EQ(answer_of(zone, std::string(53, 'a') + ".d.example.").head, "NXDOMAIN aa");
  EXPECT_EQ(answer_of(zone, std::string(54, 'a') + ".d.example.").head, "YXDOMAIN aa");
}

}  // namespace answer_test
}  // namespace pando::worker
