#pragma once

#include <string>
#include <vector>

#include "ctl/view/output.h"

/// Keys of signed zones, without a manager.
namespace pando::ctl {

/// Arguments of `pandoctl dnssec key make`.
struct KeyRequest {
  std::string zone;
  std::string algorithm = "ECDSAP256SHA256";
  unsigned rsa_bits = 2048;
  bool is_zsk = false;
  std::string folder = ".";
};

/// Makes a key file in a folder, and prints its path. The tag is that of no other key file of the
/// zone there, also with the REVOKE flag of either.
int make_key(const KeyRequest& request, Output output);

/// Prints what is public of keys: facts, and the records DNSKEY, DS, CDS and CDNSKEY. `zone` may be
/// empty if the files name it.
int show_keys(const std::vector<std::string>& files, const std::string& zone, Output output);

/// Prints the DS records of keys, for the parent zone. `digest`: "SHA-256" or "SHA-384".
int print_ds(const std::vector<std::string>& files, const std::string& zone,
             const std::string& digest, Output output);

}  // namespace pando::ctl
