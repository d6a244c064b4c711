#include "dns/message/edns.h"

#include <gtest/gtest.h>

#include "dns/message/message.h"

namespace pando::dns {
namespace edns_test {

/// A message that is a header and one record; its OPT as read_opt() sees it.
Result<Edns> read_back(Bytes& message, ByteView record) {
  message.assign(kHeaderOctets, 0);
  append(message, record);
  MessageReader reader(message);
  EXPECT_TRUE(reader.header());
  const auto read = reader.record();
  if (!read) return tl::unexpected(read.error());
  EXPECT_TRUE(reader.at_end());
  return read_opt(message, *read);
}

/// OPT record with the given CLASS, TTL and RDATA.
Bytes opt(std::uint16_t payload, std::uint32_t ttl, const Bytes& rdata) {
  Bytes record = {0, 0, 41};
  append_be16(record, payload);
  append_be32(record, ttl);
  append_be16(record, static_cast<std::uint16_t>(rdata.size()));
  append(record, rdata);
  return record;
}

Bytes octets_of(ByteView view) { return {view.begin(), view.end()}; }

TEST(ReadOpt, TakesTheFieldsFromClassAndTtl) {
  Bytes message;
  const auto edns = read_back(message, opt(1232, 0x05008000, {0, 10, 0, 2, 7, 8}));
  ASSERT_TRUE(edns);
  EXPECT_EQ(edns->udp_payload, 1232);
  EXPECT_EQ(edns->extended_rcode, 5);
  EXPECT_EQ(edns->version, 0);
  EXPECT_TRUE(edns->dnssec_ok);
  EXPECT_EQ(octets_of(*find_option(edns->options, kOptionCookie)), (Bytes{7, 8}));
}

TEST(ReadOpt, PayloadsBelow512Are512) {
  Bytes message;
  EXPECT_EQ(read_back(message, opt(0, 0, {}))->udp_payload, 512);
  EXPECT_EQ(read_back(message, opt(513, 0, {}))->udp_payload, 513);
}

TEST(ReadOpt, ItsOwnerIsTheRoot) {
  Bytes record = opt(1232, 0, {});
  record.insert(record.begin(), {1, 'a'});
  Bytes message;
  EXPECT_FALSE(read_back(message, record));
}

TEST(ReadOpt, AnotherRecordIsNoOpt) {
  Bytes record = opt(1232, 0, {});
  record[2] = 1;
  Bytes message;
  EXPECT_FALSE(read_back(message, record));
}

TEST(ReadOpt, EachOptionThatRunsOverIsAnError) {
  const Bytes whole = {0, 3, 0, 0, 0, 15, 0, 2, 0, 1};
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    Bytes message;
    const Bytes rdata(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const bool at_border = size == 0 || size == 4 || size == 10;
    EXPECT_EQ(static_cast<bool>(read_back(message, opt(1232, 0, rdata))), at_border) << size;
  }
}

TEST(ReadOpt, OptionsOfAnotherVersionAreNotLookedAt) {
  Bytes message;
  const auto edns = read_back(message, opt(1232, 0x00010000, {1, 2, 3}));
  ASSERT_TRUE(edns);
  EXPECT_EQ(edns->version, 1);
  EXPECT_TRUE(edns->options.empty());
}

TEST(FindOption, GivesTheFirstOfItsCode) {
  const Bytes options = {0, 3, 0, 0, 0, 15, 0, 1, 8, 0, 15, 0, 1, 9};
  EXPECT_EQ(octets_of(*find_option(options, kOptionEde)), Bytes{8});
  EXPECT_TRUE(find_option(options, kOptionNsid)->empty());
  EXPECT_FALSE(find_option(options, kOptionCookie));
  EXPECT_FALSE(find_option({}, kOptionCookie));
}

TEST(FindOption, StopsAtOptionsThatRunOver) {
  const Bytes options = {0, 3, 0, 9, 0, 15, 0, 0};
  EXPECT_FALSE(find_option(options, kOptionEde));
  EXPECT_FALSE(find_option(options, kOptionNsid));
}

TEST(OptBuilder, APlainRecordIsElevenOctets) {
  const OptBuilder builder(1232, Rcode::kNoError, true);
  EXPECT_EQ(octets_of(builder.record()), opt(1232, 0x00008000, {}));
}

TEST(OptBuilder, TheUpperBitsOfTheRcodeAreInTheTtl) {
  Bytes message;
  const OptBuilder bad_version(512, Rcode::kBadVers, false);
  EXPECT_EQ(read_back(message, bad_version.record())->extended_rcode, 1);
  const OptBuilder bad_cookie(512, Rcode::kBadCookie, false);
  const auto edns = read_back(message, bad_cookie.record());
  EXPECT_EQ(edns->extended_rcode, 1);  // 23 = 1 * 16 + 7
  EXPECT_EQ(edns->version, 0);
  EXPECT_FALSE(edns->dnssec_ok);
}

TEST(OptBuilder, EachOptionReadsBack) {
  OptBuilder builder(1232, Rcode::kNoError, false);
  const Bytes cookie(24, 5);
  EXPECT_TRUE(builder.add_nsid("ns1.example"));
  EXPECT_TRUE(builder.add_cookie(cookie));
  EXPECT_TRUE(builder.add_extended_error(ExtendedError::kNotReady, "loading"));
  EXPECT_TRUE(builder.add_keepalive(100));
  EXPECT_TRUE(builder.add_expire(604800));
  EXPECT_TRUE(builder.add(kOptionZoneVersion, {}));
  Bytes message;
  const auto edns = read_back(message, builder.record());
  ASSERT_TRUE(edns);
  const std::string_view nsid = "ns1.example";
  EXPECT_EQ(octets_of(*find_option(edns->options, kOptionNsid)), Bytes(nsid.begin(), nsid.end()));
  EXPECT_EQ(octets_of(*find_option(edns->options, kOptionCookie)), cookie);
  EXPECT_EQ(octets_of(*find_option(edns->options, kOptionEde)),
            (Bytes{0, 14, 'l', 'o', 'a', 'd', 'i', 'n', 'g'}));
  EXPECT_EQ(octets_of(*find_option(edns->options, kOptionKeepalive)), (Bytes{0, 100}));
  EXPECT_EQ(octets_of(*find_option(edns->options, kOptionExpire)), (Bytes{0, 9, 0x3A, 0x80}));
  EXPECT_TRUE(find_option(edns->options, kOptionZoneVersion)->empty());
}

TEST(OptBuilder, AnOptionThatDoesNotFitIsLeftOut) {
  OptBuilder builder(1232, Rcode::kNoError, false);
  EXPECT_FALSE(builder.add(kOptionNsid, Bytes(2000)));
  EXPECT_FALSE(builder.add(kOptionNsid, Bytes(1024 - 11 - 3)));
  EXPECT_EQ(builder.size(), 11U);
  EXPECT_TRUE(builder.add(kOptionNsid, Bytes(1024 - 11 - 4)));
  EXPECT_FALSE(builder.add_keepalive(1));
  Bytes message;
  EXPECT_EQ(read_back(message, builder.record())->options.size(), 1024U - 11);
}

}  // namespace edns_test
}  // namespace pando::dns
