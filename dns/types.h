#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pando::dns {

/// RR TYPE and QTYPE (RFC 1035 §3.2.2, IANA registry). Unlisted values are valid: RFC 3597.
enum class RRType : std::uint16_t {
  kA = 1,
  kNS = 2,
  kMD = 3,
  kMF = 4,
  kCNAME = 5,
  kSOA = 6,
  kMB = 7,
  kMG = 8,
  kMR = 9,
  kNULL = 10,
  kWKS = 11,
  kPTR = 12,
  kHINFO = 13,
  kMINFO = 14,
  kMX = 15,
  kTXT = 16,
  kRP = 17,
  kAFSDB = 18,
  kX25 = 19,
  kISDN = 20,
  kRT = 21,
  kNSAP = 22,
  kNSAP_PTR = 23,
  kSIG = 24,
  kKEY = 25,
  kPX = 26,
  kGPOS = 27,
  kAAAA = 28,
  kLOC = 29,
  kNXT = 30,
  kEID = 31,
  kNIMLOC = 32,
  kSRV = 33,
  kATMA = 34,
  kNAPTR = 35,
  kKX = 36,
  kCERT = 37,
  kA6 = 38,
  kDNAME = 39,
  kSINK = 40,
  kOPT = 41,
  kAPL = 42,
  kDS = 43,
  kSSHFP = 44,
  kIPSECKEY = 45,
  kRRSIG = 46,
  kNSEC = 47,
  kDNSKEY = 48,
  kDHCID = 49,
  kNSEC3 = 50,
  kNSEC3PARAM = 51,
  kTLSA = 52,
  kSMIMEA = 53,
  kHIP = 55,
  kNINFO = 56,
  kRKEY = 57,
  kTALINK = 58,
  kCDS = 59,
  kCDNSKEY = 60,
  kOPENPGPKEY = 61,
  kCSYNC = 62,
  kZONEMD = 63,
  kSVCB = 64,
  kHTTPS = 65,
  kDSYNC = 66,
  kHHIT = 67,
  kBRID = 68,
  kSPF = 99,
  kUINFO = 100,
  kUID = 101,
  kGID = 102,
  kUNSPEC = 103,
  kNID = 104,
  kL32 = 105,
  kL64 = 106,
  kLP = 107,
  kEUI48 = 108,
  kEUI64 = 109,
  kNXNAME = 128,
  kTKEY = 249,
  kTSIG = 250,
  kIXFR = 251,
  kAXFR = 252,
  kMAILB = 253,
  kMAILA = 254,
  kANY = 255,
  kURI = 256,
  kCAA = 257,
  kAVC = 258,
  kDOA = 259,
  kAMTRELAY = 260,
  kRESINFO = 261,
  kWALLET = 262,
  kCLA = 263,
  kIPN = 264,
  kTA = 32768,
  kDLV = 32769,
  kKEYDATA = 65533,
};

enum class RRClass : std::uint16_t { kIN = 1, kCH = 3, kHS = 4, kNONE = 254, kANY = 255 };

enum class Opcode : std::uint8_t {
  kQuery = 0,
  kIQuery = 1,
  kStatus = 2,
  kNotify = 4,
  kUpdate = 5,
  kDso = 6,
};

/// RCODE with its EDNS extension (RFC 6891 §6.1.3) and the TSIG codes (RFC 8945 §3).
enum class Rcode : std::uint16_t {
  kNoError = 0,
  kFormErr = 1,
  kServFail = 2,
  kNXDomain = 3,
  kNotImp = 4,
  kRefused = 5,
  kYXDomain = 6,
  kYXRRSet = 7,
  kNXRRSet = 8,
  kNotAuth = 9,
  kNotZone = 10,
  kDsoTypeNI = 11,
  kBadVers = 16,
  kBadSig = 16,
  kBadKey = 17,
  kBadTime = 18,
  kBadMode = 19,
  kBadName = 20,
  kBadAlg = 21,
  kBadTrunc = 22,
  kBadCookie = 23,
};

/// Time to live in seconds (RFC 2181 §8: 31 bits; a set top bit means 0).
struct Ttl {
  std::uint32_t seconds = 0;
  auto operator<=>(const Ttl&) const = default;
};

/// SOA serial number: RFC 1982 arithmetic, a partial order, hence no operator<.
struct Serial {
  std::uint32_t value = 0;
  bool operator==(const Serial&) const = default;
  /// RFC 1982 §3.2: true when this serial is greater; distance 2^31 is undefined and gives false.
  [[nodiscard]] constexpr bool ahead_of(Serial other) const noexcept {
    const std::uint32_t distance = value - other.value;
    return distance != 0 && distance < 0x80000000U;
  }
  /// RFC 1982 §3.1 addition of one; 0 is skipped, since peers treat it as "unset".
  [[nodiscard]] constexpr Serial next() const noexcept {
    return Serial{value == 0xFFFFFFFFU ? 1U : value + 1U};
  }
};

/// Mnemonic, or TYPEnnn / CLASSnnn (RFC 3597 §5).
std::string to_text(RRType type);
std::string to_text(RRClass rr_class);
std::string to_text(Rcode rcode);  ///< 16 is BADVERS here
/// Text of TSIG's error field (RFC 8945 §3), where 16 is BADSIG.
std::string tsig_error_to_text(Rcode error);
std::string to_text(Opcode opcode);

/// Reads a mnemonic in any case or TYPEnnn; kInvalid otherwise.
Result<RRType> rrtype_from_text(std::string_view text);
Result<RRClass> rrclass_from_text(std::string_view text);

/// Meta types and QTYPEs that may never be in a zone (RFC 6895 §3.1: 128-255, OPT and 0).
[[nodiscard]] constexpr bool is_meta_type(RRType type) noexcept {
  const auto value = static_cast<std::uint16_t>(type);
  return value == 0 || type == RRType::kOPT || (value >= 128 && value <= 255);
}

}  // namespace pando::dns
