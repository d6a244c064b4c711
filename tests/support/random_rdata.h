#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "dns/rdata/rdata_field.h"

namespace pando::dns::tests {

/// Makes valid wire RDATA for any row of the descriptor table, field by field, from a seed.
class RdataMaker {
 public:
  explicit RdataMaker(std::uint64_t seed) : engine_(seed) {}

  Bytes make(const RdataDescriptor& row) {
    Bytes out;
    for (const Field& field : row.fields()) add(*field.codec, out);
    return out;
  }

 private:
  std::size_t below(std::size_t bound) { return engine_() % bound; }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }
  std::uint8_t octet() { return static_cast<std::uint8_t>(engine_()); }
  void add_bytes(std::size_t count, Bytes& out) {
    while (count-- > 0) out.push_back(octet());
  }
  void add_counted(std::size_t count, Bytes& out) {
    out.push_back(static_cast<std::uint8_t>(count));
    add_bytes(count, out);
  }
  std::size_t blob_size() { return 1 + (chance(8) ? below(600) : below(40)); }

  void add_name(Bytes& out) {
    std::size_t room = kMaxNameOctets - 1;
    for (std::size_t labels = below(chance(10) ? 120 : 5); labels > 0; --labels) {
      const std::size_t length = 1 + below(chance(10) ? 63 : 8);
      if (length + 1 > room) break;
      room -= length + 1;
      add_counted(length, out);
    }
    out.push_back(0);
  }

  void add_window(std::size_t most_bytes, Bytes& out) {
    const std::size_t octets = 1 + below(most_bytes);
    out.push_back(static_cast<std::uint8_t>(octets));
    add_bytes(octets - 1, out);
    out.push_back(static_cast<std::uint8_t>(octet() | 1U));
  }

  void add_bitmap(std::size_t least, Bytes& out) {
    std::size_t number = chance(2) ? 0 : below(3);
    for (std::size_t windows = least + below(4); windows > 0 && number < 256; --windows) {
      out.push_back(static_cast<std::uint8_t>(number));
      add_window(32, out);
      number += 1 + below(100);
    }
  }

  void add_host(std::uint8_t form, Bytes& out) {
    if (form == 1) add_bytes(4, out);
    if (form == 2) add_bytes(16, out);
    if (form == 3) add_name(out);
  }

  void add_apl(Bytes& out) {
    for (std::size_t items = below(4); items > 0; --items) {
      const bool v6 = chance(2);
      append_be16(out, v6 ? 2 : 1);
      out.push_back(static_cast<std::uint8_t>(below(v6 ? 129 : 33)));
      const std::size_t octets = below(v6 ? 17 : 5);
      out.push_back(static_cast<std::uint8_t>((chance(2) ? 0x80U : 0U) | octets));
      add_bytes(octets, out);
      if (octets != 0) out.back() |= 1U;
    }
  }

  void add_loc(Bytes& out) {
    out.push_back(0);
    for (int i = 0; i < 3; ++i)
      out.push_back(static_cast<std::uint8_t>((1 + below(9)) << 4U | below(10)));
    append_be32(out, static_cast<std::uint32_t>(0x80000000U - 324'000'000 + below(648'000'001)));
    append_be32(out, static_cast<std::uint32_t>(0x80000000U - 648'000'000 + below(1'296'000'001)));
    append_be32(out, static_cast<std::uint32_t>(engine_()));
  }

  void add_list(Bytes& out) {
    for (std::size_t items = 1 + below(3); items > 0; --items) add_counted(1 + below(9), out);
  }

  void add_svc_value(std::uint16_t key, Bytes& out) {
    static constexpr std::string_view kPath = "/q{?dns}";
    if (key == 1 || key == 10) add_list(out);
    if (key == 3) add_bytes(2, out);
    if (key == 4) add_bytes(4 * (1 + below(3)), out);
    if (key == 6) add_bytes(16 * (1 + below(3)), out);
    if (key == 5 || key > 10) add_bytes(below(40), out);
    if (key == 7) out.insert(out.end(), kPath.begin(), kPath.end());
    if (key == 9) add_bytes(2, out);
  }

  void add_svc_params(Bytes& out) {
    std::vector<std::uint16_t> keys;
    for (std::uint16_t key = 1; key <= 10; ++key)
      if (chance(3)) keys.push_back(key);
    if (chance(3)) keys.push_back(static_cast<std::uint16_t>(11 + below(60'000)));
    if (std::count(keys.begin(), keys.end(), 1) == 0) std::erase(keys, 2);
    if (!keys.empty() && chance(2)) {
      append_be16(out, 0);
      append_be16(out, 2);
      append_be16(out, keys[below(keys.size())]);
    }
    for (const std::uint16_t key : keys) {
      Bytes value;
      add_svc_value(key, value);
      append_be16(out, key);
      append_be16(out, static_cast<std::uint16_t>(value.size()));
      append(out, value);
    }
  }

  void add_hip(Bytes& out) {
    const std::size_t tag = 1 + below(30), key = 1 + below(100);
    out.push_back(static_cast<std::uint8_t>(tag));
    out.push_back(octet());
    append_be16(out, static_cast<std::uint16_t>(key));
    add_bytes(tag + key, out);
    for (std::size_t servers = below(3); servers > 0; --servers) add_name(out);
  }

  /// A key or signature of an algorithm; private ones are named first (RFC 4034 §A.1.1).
  void add_data_of(std::uint8_t algorithm, Bytes& out) {
    static constexpr std::uint8_t kOid[] = {4, 6, 2, 0x2A, 3};
    if (algorithm == 253) add_name(out);
    if (algorithm == 254) append(out, kOid);
    add_bytes(blob_size(), out);
  }

  void add_text(const FieldCodec& codec, Bytes& out);
  void add_blob(const FieldCodec& codec, Bytes& out);
  void add_address(const FieldCodec& codec, Bytes& out);
  void add_special(const FieldCodec& codec, Bytes& out);
  void add(const FieldCodec& codec, Bytes& out);

  std::mt19937_64 engine_;
};

inline void RdataMaker::add_text(const FieldCodec& codec, Bytes& out) {
  using namespace field;
  if (&codec == &kString) add_counted(below(chance(20) ? 256 : 20), out);
  if (&codec == &kStrings)
    for (std::size_t count = 1 + below(4); count > 0; --count) add_counted(below(30), out);
  if (&codec == &kNaptrRegexp) {
    static constexpr std::string_view kExpressions[] = {"", "!^.*$!sip:a@b!",
                                                        "/(a|b)[c-e]{2}/\\1/i"};
    const std::string_view one = kExpressions[below(std::size(kExpressions))];
    out.push_back(static_cast<std::uint8_t>(one.size()));
    out.insert(out.end(), one.begin(), one.end());
  }
  if (&codec == &kOptionalString && chance(2)) add_counted(below(20), out);
  if (&codec == &kQuotedRest) add_bytes(below(chance(20) ? 1000 : 20), out);
  if (&codec == &kDigits || &codec == &kCaaTag) {
    out.push_back(static_cast<std::uint8_t>(4 + below(9)));
    for (std::size_t left = out.back(); left > 0; --left)
      out.push_back(static_cast<std::uint8_t>('0' + below(10)));
  }
}

inline void RdataMaker::add_blob(const FieldCodec& codec, Bytes& out) {
  using namespace field;
  if (&codec == &kBase64 || &codec == &kHex || &codec == &kIpsecKey) add_bytes(blob_size(), out);
  const bool no_key = &codec == &kKeyData && (out[0] & 0xC0U) == 0xC0;
  if ((&codec == &kKeyData && !no_key) || &codec == &kPublicKey) add_data_of(out[3], out);
  if (&codec == &kSignature || &codec == &kRrsigSignature) {
    out[1] |= 1U;                                  // covers a type
    if (&codec == &kRrsigSignature) out[3] = 255;  // no signer has more labels
    add_data_of(out[2], out);
  }
  if (&codec == &kFingerprint) add_bytes(out[1] == 1 ? 20 : out[1] == 2 ? 32 : blob_size(), out);
  if (&codec == &kBase64OrEmpty || &codec == &kDoaData || &codec == &kOpaque)
    add_bytes(blob_size() - 1, out);
  if (&codec == &kDigest) {
    const std::uint8_t type = out[3];
    add_bytes(type == 1 ? 20 : type == 2 ? 32 : type == 4 ? 48 : blob_size(), out);
  }
  if (&codec == &kZonemdDigest) {
    const std::uint8_t hash = out[5];
    add_bytes(hash == 1 ? 48 : hash == 2 ? 64 : 11 + blob_size(), out);
  }
  if (&codec == &kSalt) add_counted(below(chance(5) ? 256 : 9), out);
  if (&codec == &kNextHash) add_counted(out[0] == 1 ? 20 : 1 + below(39), out);
}

inline void RdataMaker::add_address(const FieldCodec& codec, Bytes& out) {
  using namespace field;
  if (&codec == &kIpv4) add_bytes(4, out);
  if (&codec == &kIpv6) add_bytes(16, out);
  if (&codec == &kEui48) add_bytes(6, out);
  if (&codec == &kEui64 || &codec == &kLocator64) add_bytes(8, out);
  if (&codec == &kNsap) add_bytes(blob_size(), out);
  if (&codec == &kAtma) {
    out.push_back(0);
    add_bytes(1 + below(20), out);
  }
  if (&codec == &kA6Suffix) {
    const std::size_t prefix = below(129);
    out.push_back(static_cast<std::uint8_t>(prefix));
    const std::size_t first = out.size();
    add_bytes(16 - prefix / 8, out);
    if (prefix < 128) out[first] &= static_cast<std::uint8_t>(0xFFU >> (prefix % 8));
  }
  if (&codec == &kApl) add_apl(out);
}

inline void RdataMaker::add_special(const FieldCodec& codec, Bytes& out) {
  using namespace field;
  if (&codec == &kTypeBitmap) add_bitmap(1, out);
  if (&codec == &kTypeBitmapOrEmpty) add_bitmap(0, out);
  if (&codec == &kNxtBitmap) {
    Bytes window;
    add_window(16, window);
    window[1] &= 0x7FU;
    if (window.size() == 2) window[1] |= 1U;
    append(out, ByteView(window).subspan(1));
  }
  if (&codec == &kWksPorts) {
    out.push_back(octet());
    add_bytes(below(20), out);
    if (out.size() > 5) out.back() |= 1U;  // the last octet says something
  }
  if (&codec == &kIpsecGateway) {
    out[1] &= 3U;
    add_host(out[1], out);
  }
  if (&codec == &kAmtRelay) {
    out.push_back(octet() & 0x83U);
    add_host(out.back() & 3U, out);
  }
  if (&codec == &kHip) add_hip(out);
  if (&codec == &kLoc) add_loc(out);
  if (&codec == &kSvcParams) add_svc_params(out);
}

inline void RdataMaker::add(const FieldCodec& codec, Bytes& out) {
  using namespace field;
  for (const auto* one : {&kU8, &kAlgorithm, &kAlgorithmName, &kDigestType, &kKeyProtocol,
                          &kNsec3Hash, &kDsyncScheme})
    if (&codec == one) out.push_back(chance(2) ? static_cast<std::uint8_t>(below(6)) : octet());
  for (const auto* two : {&kU16, &kType, &kCertType, &kKeyFlags})
    if (&codec == two)
      append_be16(out, static_cast<std::uint16_t>(chance(2) ? below(12) : engine_()));
  if (&codec == &kZero16) append_be16(out, 0);
  if (&codec == &kU32 || &codec == &kTtl || &codec == &kTime) add_bytes(4, out);
  if (&codec == &kU64) add_bytes(8, out);
  if (&codec == &kName || (&codec == &kA6Name && out[0] != 0)) add_name(out);
  add_text(codec, out);
  add_blob(codec, out);
  add_address(codec, out);
  add_special(codec, out);
}

}  // namespace pando::dns::tests
