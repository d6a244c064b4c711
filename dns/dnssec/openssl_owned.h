#pragma once

#include <openssl/bn.h>
#include <openssl/evp.h>

#include <memory>

/// Owners of OpenSSL's objects, for the sources of this folder.
namespace pando::dns {

template <class T, void (*kFree)(T*)>
struct OpensslFree {
  void operator()(T* object) const noexcept { kFree(object); }
};
template <class T, void (*kFree)(T*)>
using OpensslOwned = std::unique_ptr<T, OpensslFree<T, kFree>>;

using KeyContext = OpensslOwned<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;

}  // namespace pando::dns
