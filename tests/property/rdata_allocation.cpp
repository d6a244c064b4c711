#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "base/build.h"
#include "dns/rdata/rdata.h"

// Loading a zone reads millions of records, so the common types may not touch the heap.

namespace {
std::size_t allocations = 0;
}  // namespace

void* operator new(std::size_t octets) {
  ++allocations;
  if (void* memory = std::malloc(octets)) return memory;
  throw std::bad_alloc();
}
#ifdef PANDO_WITH_SANITIZER  // else base/secret.cpp has these, which call free() as well
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace pando::dns {
namespace {

/// Allocations while `words` become wire RDATA in a vector that has the room.
std::size_t allocations_for(RRType type, std::initializer_list<Token> words) {
  static constexpr std::uint8_t kOrigin[] = {7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 0};
  Bytes out;
  out.reserve(1024);
  const std::size_t before = allocations;
  auto status = rdata_from_text(type, std::span(words.begin(), words.size()),
                                NameView(kOrigin, sizeof kOrigin), out);
  const std::size_t counted = allocations - before;
  EXPECT_TRUE(status) << to_text(type) << ": " << status.error().text;
  return counted;
}

TEST(RdataFromText, CommonTypesDoNotAllocate) {
  EXPECT_EQ(allocations_for(RRType::kA, {{"192.0.2.1"}}), 0U);
  EXPECT_EQ(allocations_for(RRType::kAAAA, {{"2001:db8::1"}}), 0U);
  EXPECT_EQ(allocations_for(RRType::kNS, {{"a-rather-long-name-server-name.example.net."}}), 0U);
  EXPECT_EQ(allocations_for(RRType::kCNAME, {{"relative-name-without-final-dot"}}), 0U);
  EXPECT_EQ(allocations_for(RRType::kMX, {{"10"}, {"mail"}}), 0U);
  EXPECT_EQ(allocations_for(RRType::kTXT, {{"v=spf1 include:_spf.example.net -all", true}}), 0U);
  EXPECT_EQ(allocations_for(RRType::kSRV, {{"0"}, {"5"}, {"5060"}, {"sip"}}), 0U);
}

TEST(RdataFromText, TypesOfSignedZonesDoNotAllocate) {
  EXPECT_EQ(
      allocations_for(RRType::kDS,
                      {{"60485"}, {"13"}, {"1"}, {"2BB183AF5F22588179A53B0A98631FAD1A292118"}}),
      0U);
  EXPECT_EQ(allocations_for(RRType::kNSEC, {{"host.example.net."}, {"A"}, {"RRSIG"}, {"NSEC"}}),
            0U);
  EXPECT_EQ(
      allocations_for(RRType::kNSEC3,
                      {{"1"}, {"0"}, {"0"}, {"-"}, {"2vptu5timamqttgl4luu9kg21e0aor3s"}, {"A"}}),
      0U);
  EXPECT_EQ(allocations_for(RRType::kRRSIG, {{"A"},
                                             {"13"},
                                             {"2"},
                                             {"86400"},
                                             {"20300322173103"},
                                             {"20300220173103"},
                                             {"2642"},
                                             {"example.net."},
                                             {"oJB1W6WNGv+ldvQ3WDG0MQkg5IEhjRip8WTrPYGv"}}),
            0U);
}

TEST(CheckRdata, DoesNotAllocate) {
  Bytes rdata;
  ASSERT_TRUE(rdata_from_text(RRType::kHTTPS, "1 . alpn=h2,h3 port=8443 ipv4hint=192.0.2.1",
                              NameView(), rdata));
  const std::size_t before = allocations;
  EXPECT_TRUE(check_rdata(RRType::kHTTPS, rdata));
  EXPECT_EQ(compare_rdata_canonical(RRType::kHTTPS, rdata, rdata), 0);
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace pando::dns
