// OpenSSL's low-level SHA-1, although deprecated. EVP allocates a heap block for each digest, which
// the query path must not do. EVP also takes twice the time (121 against 55 ns for a short name).
#define OPENSSL_SUPPRESS_DEPRECATED

#include "dns/dnssec/nsec3_hash.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>

namespace pando::dns {

namespace {

void digest(ByteView data, ByteView salt, Nsec3Hash& out) noexcept {
  SHA_CTX context;
  SHA1_Init(&context);
  SHA1_Update(&context, data.data(), data.size());
  SHA1_Update(&context, salt.data(), salt.size());
  SHA1_Final(out.data(), &context);
}

bool within_limits(std::uint16_t iterations, ByteView salt) noexcept {
  return iterations <= kMaxNsec3Iterations && salt.size() <= kMaxSaltOctets;
}

/// RFC 5155 §5; `folded` is the canonical form of the name.
void iterate(const Name& folded, std::uint16_t iterations, ByteView salt, Nsec3Hash& out) noexcept {
  digest(folded.view().bytes(), salt, out);
  for (std::uint16_t i = 0; i < iterations; ++i) digest(out, salt, out);
}

}  // namespace

bool Nsec3Hasher::hash(NameView name, std::uint16_t iterations, ByteView salt,
                       Nsec3Hash& out) noexcept {
  if (!within_limits(iterations, salt)) return false;
  iterate(Name(name).folded(), iterations, salt, out);
  return true;
}

bool Nsec3Hasher::Memo::is_for(const Name& folded, std::uint16_t count,
                               ByteView its_salt) const noexcept {
  return filled && iterations == count &&
         std::ranges::equal(ByteView(salt.data(), salt_octets), its_salt) &&
         std::ranges::equal(name.view().bytes(), folded.view().bytes());
}

bool Nsec3Hasher::hash_and_remember(NameView name, std::uint16_t iterations, ByteView salt,
                                    Nsec3Hash& out) noexcept {
  if (salt.size() > kMemoSalt) return hash(name, iterations, salt, out);
  if (!within_limits(iterations, salt)) return false;
  const Name folded = Name(name).folded();
  Memo& memo = memos_[hash_name(folded) % kMemos];
  if (!memo.is_for(folded, iterations, salt)) {
    memo.name = folded;
    memo.iterations = iterations;
    memo.salt_octets = static_cast<std::uint8_t>(salt.size());
    std::ranges::copy(salt, memo.salt.begin());
    memo.filled = true;
    iterate(folded, iterations, salt, memo.hash);
  }
  out = memo.hash;
  return true;
}

std::string doubt_about_iterations(std::uint16_t iterations) {
  constexpr std::uint16_t kInsecureAbove = 100;  // RFC 9276 §3.2; resolvers use 50, 100 or 150
  if (iterations == 0) return {};
  const char* effect = "each costs time in every negative answer";
  if (iterations > kMaxNsec3Iterations)
    effect = "negative answers have no proofs here";
  else if (iterations > kInsecureAbove)
    effect = "resolvers treat the zone as unsigned, or fail";
  return fmt::format("NSEC3PARAM has {} iterations, RFC 9276 wants 0: {}", iterations, effect);
}

}  // namespace pando::dns
