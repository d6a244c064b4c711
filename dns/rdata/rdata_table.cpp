#include <algorithm>
#include <array>
#include <iterator>

#include "dns/rdata/rdata_field.h"

namespace pando::dns {

namespace {

using namespace field;

template <class... Fields>
constexpr RdataDescriptor row(RRType type, Fields... fields) {
  RdataDescriptor descriptor{type, {fields...}};
  descriptor.count = sizeof...(fields);
  for (const Field& field : descriptor.slots) {
    descriptor.expands |= field.expands();
    descriptor.folds |= field.folds();
  }
  return descriptor;
}

constexpr Field name(const char* what, NameRule rule) { return {what, &kName, rule}; }

constexpr RdataDescriptor one_name(RRType type, const char* what) {
  return row(type, name(what, NameRule::kCompress));
}
constexpr RdataDescriptor preferred_name(RRType type, const char* what, NameRule rule) {
  return row(type, Field{"preference", &kU16}, name(what, rule));
}
constexpr RdataDescriptor texts(RRType type) { return row(type, Field{"text", &kStrings}); }
constexpr RdataDescriptor opaque(RRType type) { return row(type, Field{"data", &kOpaque}); }

constexpr RdataDescriptor key(RRType type,
                              const FieldCodec& data = kPublicKey) {  // RFC 4034 §2.1
  return row(type, Field{"flags", &kKeyFlags}, Field{"protocol", &kKeyProtocol},
             Field{"algorithm", &kAlgorithm}, Field{"public key", &data});
}
constexpr RdataDescriptor digest(RRType type) {  // RFC 4034 §5.1
  return row(type, Field{"key tag", &kU16}, Field{"algorithm", &kAlgorithm},
             Field{"digest type", &kDigestType}, Field{"digest", &kDigest});
}
constexpr RdataDescriptor signature(RRType type, NameRule signer,
                                    const FieldCodec& data) {  // RFC 4034 §3.1
  return row(type, Field{"type covered", &kType}, Field{"algorithm", &kAlgorithm},
             Field{"labels", &kU8}, Field{"original TTL", &kU32}, Field{"expiration", &kTime},
             Field{"inception", &kTime}, Field{"key tag", &kU16}, name("signer", signer),
             Field{"signature", &data});
}
constexpr RdataDescriptor association(RRType type) {  // RFC 6698 §2.1
  return row(type, Field{"usage", &kU8}, Field{"selector", &kU8}, Field{"matching type", &kU8},
             Field{"data", &kHex});
}
constexpr RdataDescriptor service_binding(RRType type) {  // RFC 9460 §2.2
  return row(type, Field{"priority", &kU16}, name("target", NameRule::kPlain),
             Field{"parameters", &kSvcParams});
}

// Types without a row are opaque (RFC 3597): UINFO, UID, GID, KEYDATA and all unassigned ones.
constexpr RdataDescriptor kRows[] = {
    row(RRType::kA, Field{"address", &kIpv4}),  // RFC 1035 §3.4.1
    one_name(RRType::kNS, "name server"),       // RFC 1035 §3.3
    one_name(RRType::kMD, "mail agent"),
    one_name(RRType::kMF, "mail agent"),
    one_name(RRType::kCNAME, "target"),
    row(RRType::kSOA, name("primary", NameRule::kCompress), name("mailbox", NameRule::kCompress),
        Field{"serial", &kU32}, Field{"refresh", &kTtl}, Field{"retry", &kTtl},
        Field{"expire", &kTtl}, Field{"minimum", &kTtl}),
    one_name(RRType::kMB, "host"),
    one_name(RRType::kMG, "mailbox"),
    one_name(RRType::kMR, "mailbox"),
    opaque(RRType::kNULL),
    row(RRType::kWKS, Field{"address", &kIpv4}, Field{"services", &kWksPorts}),
    one_name(RRType::kPTR, "target"),
    row(RRType::kHINFO, Field{"CPU", &kString}, Field{"system", &kString}),
    row(RRType::kMINFO, name("mailbox", NameRule::kCompress),
        name("error mailbox", NameRule::kCompress)),
    preferred_name(RRType::kMX, "exchange", NameRule::kCompress),
    texts(RRType::kTXT),
    row(RRType::kRP, name("mailbox", NameRule::kExpand),
        name("text", NameRule::kExpand)),  // RFC 1183
    row(RRType::kAFSDB, Field{"subtype", &kU16}, name("host", NameRule::kExpand)),
    row(RRType::kX25, Field{"address", &kDigits}),
    row(RRType::kISDN, Field{"address", &kString}, Field{"subaddress", &kOptionalString}),
    preferred_name(RRType::kRT, "host", NameRule::kExpand),
    row(RRType::kNSAP, Field{"address", &kNsap}),  // RFC 1706
    row(RRType::kNSAP_PTR, name("target", NameRule::kPlain)),
    signature(RRType::kSIG, NameRule::kExpand, kSignature),  // RFC 2535 §4.1
    key(RRType::kKEY, kKeyData),                             // RFC 2535 §3.1
    row(RRType::kPX, Field{"preference", &kU16}, name("MAP822", NameRule::kExpand),
        name("MAPX400", NameRule::kExpand)),  // RFC 2163 §4
    row(RRType::kGPOS, Field{"longitude", &kString}, Field{"latitude", &kString},
        Field{"altitude", &kString}),                   // RFC 1712
    row(RRType::kAAAA, Field{"address", &kIpv6}),       // RFC 3596
    row(RRType::kLOC, Field{"location", &kLoc}),        // RFC 1876
    row(RRType::kNXT, name("next", NameRule::kExpand),  // RFC 2535 §5
        Field{"types", &kNxtBitmap}),
    row(RRType::kEID, Field{"identifier", &kHex}),
    row(RRType::kNIMLOC, Field{"locator", &kHex}),
    row(RRType::kSRV, Field{"priority", &kU16}, Field{"weight", &kU16}, Field{"port", &kU16},
        name("target", NameRule::kExpand)),  // RFC 2782
    row(RRType::kATMA, Field{"address", &kAtma}),
    row(RRType::kNAPTR, Field{"order", &kU16}, Field{"preference", &kU16}, Field{"flags", &kString},
        Field{"services", &kString}, Field{"regexp", &kNaptrRegexp},
        name("replacement", NameRule::kExpand)),                  // RFC 3403 §4
    preferred_name(RRType::kKX, "exchanger", NameRule::kExpand),  // RFC 2230
    row(RRType::kCERT, Field{"type", &kCertType}, Field{"key tag", &kU16},
        Field{"algorithm", &kAlgorithmName}, Field{"certificate", &kBase64}),  // RFC 4398
    row(RRType::kA6, Field{"address", &kA6Suffix},
        Field{"prefix name", &kA6Name, NameRule::kFold}),    // RFC 2874
    row(RRType::kDNAME, name("target", NameRule::kExpand)),  // RFC 6672
    row(RRType::kSINK, Field{"meaning", &kU8}, Field{"coding", &kU8}, Field{"subcoding", &kU8},
        Field{"data", &kBase64OrEmpty}),
    opaque(RRType::kOPT),
    row(RRType::kAPL, Field{"prefixes", &kApl}),  // RFC 3123
    digest(RRType::kDS),
    row(RRType::kSSHFP, Field{"algorithm", &kU8}, Field{"type", &kU8},
        Field{"fingerprint", &kFingerprint}),  // RFC 4255
    row(RRType::kIPSECKEY, Field{"precedence", &kU8}, Field{"gateway type", &kU8},
        Field{"algorithm", &kU8}, Field{"gateway", &kIpsecGateway},
        Field{"public key", &kIpsecKey}),  // RFC 4025
    signature(RRType::kRRSIG, NameRule::kFold, kRrsigSignature),
    row(RRType::kNSEC, name("next", NameRule::kPlain),
        Field{"types", &kTypeBitmap}),  // RFC 4034 §4
    key(RRType::kDNSKEY),
    row(RRType::kDHCID, Field{"digest", &kBase64}),  // RFC 4701
    row(RRType::kNSEC3, Field{"hash algorithm", &kNsec3Hash}, Field{"flags", &kU8},
        Field{"iterations", &kU16}, Field{"salt", &kSalt}, Field{"next hash", &kNextHash},
        Field{"types", &kTypeBitmapOrEmpty}),  // RFC 5155 §3
    row(RRType::kNSEC3PARAM, Field{"hash algorithm", &kNsec3Hash}, Field{"flags", &kU8},
        Field{"iterations", &kU16}, Field{"salt", &kSalt}),  // RFC 5155 §4
    association(RRType::kTLSA),
    association(RRType::kSMIMEA),             // RFC 8162
    row(RRType::kHIP, Field{"host", &kHip}),  // RFC 8005
    texts(RRType::kNINFO),
    row(RRType::kRKEY, Field{"flags", &kZero16}, Field{"protocol", &kU8},
        Field{"algorithm", &kAlgorithm}, Field{"public key", &kPublicKey}),
    row(RRType::kTALINK, name("previous", NameRule::kPlain), name("next", NameRule::kPlain)),
    digest(RRType::kCDS),  // RFC 7344
    key(RRType::kCDNSKEY),
    row(RRType::kOPENPGPKEY, Field{"key", &kBase64}),  // RFC 7929
    row(RRType::kCSYNC, Field{"serial", &kU32}, Field{"flags", &kU16},
        Field{"types", &kTypeBitmapOrEmpty}),  // RFC 7477
    row(RRType::kZONEMD, Field{"serial", &kU32}, Field{"scheme", &kU8},
        Field{"hash algorithm", &kU8}, Field{"digest", &kZonemdDigest}),  // RFC 8976
    service_binding(RRType::kSVCB),
    service_binding(RRType::kHTTPS),
    row(RRType::kDSYNC, Field{"type", &kType}, Field{"scheme", &kDsyncScheme}, Field{"port", &kU16},
        name("target", NameRule::kPlain)),        // RFC 9859
    row(RRType::kHHIT, Field{"data", &kBase64}),  // RFC 9886
    row(RRType::kBRID, Field{"data", &kBase64}),
    texts(RRType::kSPF),  // RFC 4408 §3.1.1
    row(RRType::kUNSPEC, Field{"data", &kBase64}),
    row(RRType::kNID, Field{"preference", &kU16}, Field{"node ID", &kLocator64}),  // RFC 6742
    row(RRType::kL32, Field{"preference", &kU16}, Field{"locator", &kIpv4}),
    row(RRType::kL64, Field{"preference", &kU16}, Field{"locator", &kLocator64}),
    preferred_name(RRType::kLP, "target", NameRule::kPlain),
    row(RRType::kEUI48, Field{"address", &kEui48}),  // RFC 7043
    row(RRType::kEUI64, Field{"address", &kEui64}),
    row(RRType::kURI, Field{"priority", &kU16}, Field{"weight", &kU16},
        Field{"target", &kQuotedRest}),  // RFC 7553 §4
    row(RRType::kCAA, Field{"flags", &kU8}, Field{"tag", &kCaaTag},
        Field{"value", &kQuotedRest}),  // RFC 8659 §4
    texts(RRType::kAVC),
    row(RRType::kDOA, Field{"enterprise", &kU32}, Field{"type", &kU32}, Field{"location", &kU8},
        Field{"media type", &kString}, Field{"data", &kDoaData}),
    row(RRType::kAMTRELAY, Field{"precedence", &kU8}, Field{"relay", &kAmtRelay}),  // RFC 8777
    texts(RRType::kRESINFO),                                                        // RFC 9606
    texts(RRType::kWALLET),
    texts(RRType::kCLA),
    row(RRType::kIPN, Field{"number", &kU64}),
    digest(RRType::kTA),
    digest(RRType::kDLV),  // RFC 4431
};

static_assert(std::is_sorted(std::begin(kRows), std::end(kRows),
                             [](const auto& a, const auto& b) { return a.type < b.type; }),
              "rows out of order would hide types from find_descriptor");

/// Row + 1 by type for the dense part of the registry; 0 = none.
constexpr auto kRowOfType = [] {
  std::array<std::uint8_t, 265> index{};
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    if (static_cast<std::size_t>(kRows[i].type) < index.size())
      index[static_cast<std::size_t>(kRows[i].type)] = static_cast<std::uint8_t>(i + 1);
  return index;
}();

}  // namespace

const RdataDescriptor* find_descriptor(RRType type) noexcept {
  const auto value = static_cast<std::size_t>(type);
  if (value < kRowOfType.size())
    return kRowOfType[value] == 0 ? nullptr : &kRows[kRowOfType[value] - 1];
  const auto* const row =
      std::lower_bound(std::begin(kRows), std::end(kRows), type,
                       [](const RdataDescriptor& one, RRType sought) { return one.type < sought; });
  return row != std::end(kRows) && row->type == type ? row : nullptr;
}

std::span<const RdataDescriptor> all_descriptors() noexcept { return kRows; }

}  // namespace pando::dns
