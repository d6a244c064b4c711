#include "manager/request/used_signatures.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace pando::manager {

UsedSignatures::UsedSignatures(std::size_t most)
    : most_(most), used_(0, Hash{random_number<std::uint64_t>()}) {}

UsedSignatures::Signature UsedSignatures::signature_of(ByteView mac) noexcept {
  Signature signature = 0;
  std::memcpy(&signature, mac.data(), std::min(mac.size(), sizeof signature));
  return signature;
}

void UsedSignatures::add(Signature signature, std::uint64_t until, std::uint64_t now) {
  while (!in_order_.empty() && (in_order_.front().second < now || in_order_.size() >= most_)) {
    used_.erase(in_order_.front().first);
    in_order_.pop_front();
  }
  if (used_.insert(signature).second) in_order_.emplace_back(signature, until);
}

}  // namespace pando::manager
