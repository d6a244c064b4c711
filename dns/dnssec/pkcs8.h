#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "dns/dnssec/signing_key.h"

namespace pando::dns {

/// The private key in a PKCS #8 structure in DER (RFC 5958 §2), of RSA (RFC 8017 A.1.2), a curve
/// (RFC 5915) or EdDSA (RFC 8410). OpenSSL's own reader would free its copies without overwriting
/// them. RSA has several DNSSEC algorithms: the result names RSASHA256. The caller holds a
/// WipeFreed. kInvalid for octets in another form; kUnsupported for keys of another kind.
Result<PrivateNumbers> parse_pkcs8(ByteView der);

}  // namespace pando::dns
