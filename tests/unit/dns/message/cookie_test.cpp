#include "dns/message/cookie.h"

#include <gtest/gtest.h>

#include <string>

namespace pando::dns {
namespace cookie_test {

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(
        static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

CookieSecret secret_of(std::string_view hex) {
  CookieSecret secret{};
  const Bytes octets = from_hex(hex);
  std::copy(octets.begin(), octets.end(), secret.begin());
  return secret;
}

// The secrets, addresses, times and cookies of RFC 9018 Appendix A.
constexpr std::string_view kSecret = "e5e973e5a6b2a43f48e7dc849e37bfcf";
constexpr std::string_view kOldSecret = "dd3bdf9344b678b185a6f5cb60fca715";
constexpr std::string_view kNewSecret = "445536bcd2513298075a5d379663c962";
constexpr std::uint32_t kTime = 1559731985;
constexpr std::string_view kClientCookie = "2464c4abcf10c957";
constexpr std::string_view kCookie = "2464c4abcf10c957010000005cf79f111f8130c3eee29480";

ServerCookies cookies_with(std::initializer_list<std::string_view> secrets) {
  std::vector<CookieSecret> octets;
  for (const auto secret : secrets) octets.push_back(secret_of(secret));
  return std::move(*ServerCookies::create(octets));
}

IpAddress client() { return *IpAddress::from_text("198.51.100.100"); }

Bytes option_of(const CookieReply& reply) { return {reply.option.begin(), reply.option.end()}; }

TEST(CookieVectors, ANewClientLearnsItsCookie) {  // RFC 9018 §A.1
  const CookieReply reply =
      cookies_with({kSecret}).answer(from_hex(kClientCookie), client(), kTime);
  EXPECT_EQ(reply.state, CookieState::kClientOnly);
  EXPECT_EQ(option_of(reply), from_hex(kCookie));
}

TEST(CookieVectors, AnOldCookieIsRenewed) {  // RFC 9018 §A.2
  const CookieReply reply = cookies_with({kSecret}).answer(from_hex(kCookie), client(), 1559734385);
  EXPECT_EQ(reply.state, CookieState::kValid);
  EXPECT_EQ(option_of(reply), from_hex("2464c4abcf10c957010000005cf7a871d4a564a1442aca77"));
}

TEST(CookieVectors, ReservedOctetsAreHashedAndNotSentBack) {  // RFC 9018 §A.3
  const Bytes learnt = from_hex("fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5");
  const IpAddress other = *IpAddress::from_text("203.0.113.203");
  ServerCookies cookies = cookies_with({kSecret});
  EXPECT_EQ(cookies.answer(learnt, other, 1559727985).state, CookieState::kValid);
  // By the time of the RFC's answer the cookie is older than an hour: renewed all the same.
  EXPECT_EQ(option_of(cookies.answer(learnt, other, 1559734700)),
            from_hex("fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e"));
}

TEST(CookieVectors, ARolledOverSecretStillVerifies) {  // RFC 9018 §A.4
  const IpAddress other = *IpAddress::from_text("2001:db8:220:1:59de:d0f4:8769:82b8");
  const Bytes learnt = from_hex("22681ab97d52c298010000005cf7c57926556bd0934c72f8");
  const CookieReply reply =
      cookies_with({kNewSecret, kOldSecret}).answer(learnt, other, 1559741961);
  EXPECT_EQ(reply.state, CookieState::kValid);
  EXPECT_EQ(option_of(reply), from_hex("22681ab97d52c298010000005cf7c609a6bb79d16625507a"));
}

TEST(Cookie, AYoungCookieIsSentBackAsItIs) {
  ServerCookies cookies = cookies_with({kSecret, kOldSecret});
  EXPECT_EQ(option_of(cookies.answer(from_hex(kCookie), client(), kTime + 1800)),
            from_hex(kCookie));
  EXPECT_NE(option_of(cookies.answer(from_hex(kCookie), client(), kTime + 1801)),
            from_hex(kCookie));
}

TEST(Cookie, ItIsValidForAnHourAndFiveMinutesAhead) {
  ServerCookies cookies = cookies_with({kSecret});
  const auto state = [&](std::uint32_t now) {
    return cookies.answer(from_hex(kCookie), client(), now).state;
  };
  EXPECT_EQ(state(kTime + 3600), CookieState::kValid);
  EXPECT_EQ(state(kTime + 3601), CookieState::kInvalid);
  EXPECT_EQ(state(kTime - 300), CookieState::kValid);
  EXPECT_EQ(state(kTime - 301), CookieState::kInvalid);
}

TEST(Cookie, TimeGoesOnWhenItsThirtyTwoBitsWrap) {
  ServerCookies cookies = cookies_with({kSecret});
  const Bytes cookie = option_of(cookies.answer(from_hex(kClientCookie), client(), 0xFFFFFFF0));
  EXPECT_EQ(cookies.answer(cookie, client(), 0x10).state, CookieState::kValid);
  EXPECT_EQ(cookies.answer(cookie, client(), 3600).state, CookieState::kInvalid);
}

TEST(Cookie, AnotherAddressOrSecretIsInvalidAndGetsACookieOfItsOwn) {
  ServerCookies cookies = cookies_with({kSecret});
  const IpAddress other = *IpAddress::from_text("198.51.100.101");
  const CookieReply reply = cookies.answer(from_hex(kCookie), other, kTime);
  EXPECT_EQ(reply.state, CookieState::kInvalid);
  EXPECT_EQ(cookies.answer(reply.option, other, kTime).state, CookieState::kValid);
  EXPECT_EQ(cookies_with({kNewSecret}).answer(from_hex(kCookie), client(), kTime).state,
            CookieState::kInvalid);
}

TEST(Cookie, AnyChangedBitMakesItInvalid) {
  ServerCookies cookies = cookies_with({kSecret});
  const Bytes cookie = from_hex(kCookie);
  for (std::size_t bit = 0; bit < cookie.size() * 8; ++bit) {
    Bytes changed = cookie;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_EQ(cookies.answer(changed, client(), kTime).state, CookieState::kInvalid) << bit;
  }
}

TEST(Cookie, OptionsOfOtherSizesAreMalformedOrFromAnotherServer) {
  ServerCookies cookies = cookies_with({kSecret});
  for (std::size_t size = 0; size <= 64; ++size) {
    Bytes option = from_hex(kCookie);
    option.resize(size);
    const CookieState state = cookies.answer(option, client(), kTime).state;
    const bool malformed = size < 8 || (size > 8 && size < 16) || size > 40;
    const bool ours = size == 8 || size == 24;
    EXPECT_EQ(state == CookieState::kMalformed, malformed) << size;
    EXPECT_EQ(state == CookieState::kInvalid, !malformed && !ours) << size;
  }
}

TEST(Cookie, ThereMustBeASecret) { EXPECT_FALSE(ServerCookies::create({})); }

}  // namespace cookie_test
}  // namespace pando::dns
