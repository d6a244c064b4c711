#include "ctl/verbs.h"

#include "ctl/signing/dnssec_commands.h"
#include "ctl/signing/key_commands.h"

namespace pando::ctl {

namespace {

void add_key_verbs(CommandLine& line, CLI::App* dnssec) {
  Arguments& given = line.arguments();
  CLI::App* keys = line.group(dnssec, "key", "files with keys of zones");
  KeyRequest& request = given.key_request;
  CLI::App* made = line.add(keys, "make", "make a key in a file; needs no manager",
                            [&given] { return make_key(given.key_request, output_for(given)); });
  made->add_option("zone", request.zone, "name of the zone")->required();
  made->add_option("--algorithm", request.algorithm, "algorithm of the signatures")
      ->check(CLI::IsMember({"RSASHA256", "ECDSAP256SHA256", "ECDSAP384SHA384", "ED25519"}))
      ->capture_default_str();
  made->add_option("--bits", request.rsa_bits, "size of an RSA key")
      ->check(CLI::Range(dns::kMinRsaBits, dns::kMaxRsaBits))
      ->capture_default_str();
  made->add_flag("--zsk", request.is_zsk, "a zone-signing key, for use beside a key-signing one");
  made->add_option("--folder", request.folder, "folder of the new file")->capture_default_str();
  const auto with_files = [&given](CLI::App* command) {
    command->add_option("files", given.files, "key files: ours, or of BIND, Knot or PowerDNS")
        ->required();
    command->add_option("--zone", given.zone, "the keys' zone, where files do not name it");
    return command;
  };
  with_files(line.add(keys, "show", "what is public of keys; needs no manager",
                      [&given] { return show_keys(given.files, given.zone, output_for(given)); }));
  with_files(line.add(keys, "ds", "DS records for the parent; needs no manager",
                      [&given] {
                        return print_ds(given.files, given.zone, given.digest, output_for(given));
                      }))
      ->add_option("--digest", given.digest, "digest of the records")
      ->check(CLI::IsMember({"SHA-256", "SHA-384"}))
      ->capture_default_str();
}

/// Verbs that need a manager.
void add_signed_zone_verbs(CommandLine& line, CLI::App* dnssec) {
  Arguments& given = line.arguments();
  const auto with_zone = [&given](CLI::App* command) {
    command->add_option("name", given.zone, "name of the zone")->required();
    return command;
  };
  line.add_session(dnssec, "list", [](auto& s) { return DnssecCommands(s).list(); });
  with_zone(line.add_session(dnssec, "status",
                             [&given](auto& s) { return DnssecCommands(s).status(given.zone); }));
  with_zone(line.add_session(dnssec, "ds", "DS records of a zone that is signed here",
                             [&given](auto& s) { return DnssecCommands(s).ds(given.zone); }));
  with_zone(line.add_session(dnssec, "check", "what signing a zone by a policy would do",
                             [&given](auto& s) {
                               return DnssecCommands(s).check(given.zone, given.label);
                             }))
      ->add_option("--policy", given.label, "name of the policy; without: the zone's, or 'default'");
  CLI::App* taking = with_zone(line.add_session(
      dnssec, "import", "give key files to the manager",
      [&given](auto& s) { return DnssecCommands(s).import_keys(given.zone, given.sign.keys); }));
  KeyArguments& keys = given.sign.keys;
  taking->add_option("files", keys.keys, "key files: ours, or of BIND, Knot or PowerDNS");
  taking->add_option("--zsk", keys.zsks,
                     "key file of a zone-signing key, where the file itself does not tell")
      ->allow_extra_args(false);
  with_zone(line.add_session(dnssec, "ds-seen", [&given](auto& s) {
    return s.zone_order(ipc::verb::kDnssecDsSeen, given.zone);
  }));
  with_zone(line.add_session(dnssec, "ds-gone", [&given](auto& s) {
    return s.zone_order(ipc::verb::kDnssecDsGone, given.zone);
  }));
  with_zone(line.add_session(dnssec, "unsign",
                             [&given](auto& s) {
                               return s.zone_order(given.remove ? ipc::verb::kDnssecStaySigned
                                                                : ipc::verb::kDnssecUnsign,
                                                   given.zone);
                             }))
      ->add_flag("--cancel", given.remove, "keep the zone signed, or sign it again");
  with_zone(line.add_session(dnssec, "roll",
                             [&given](auto& s) {
                               return DnssecCommands(s).roll(given.zone, given.label);
                             }))
      ->add_option("--keys", given.label, "keys to replace")
      ->check(CLI::IsMember({"all", "ksk", "zsk"}));
  with_zone(line.add_session(dnssec, "continue", [&given](auto& s) {
    return s.zone_order(ipc::verb::kDnssecContinue, given.zone);
  }));
  with_zone(line.add_session(dnssec, "hold", [&given](auto& s) {
    return s.zone_order(ipc::verb::kDnssecHold, given.zone);
  }));
  with_zone(line.add_session(dnssec, "restore-key", "take a key that was put away back",
                             [&given](auto& s) {
                               return DnssecCommands(s).restore_key(given.zone, given.label);
                             }))
      ->add_option("tag", given.label, "the key's tag")
      ->required();
  line.add_session(dnssec, "clock-ok", [](auto& s) { return DnssecCommands(s).clock_ok(); });
}

}  // namespace

void add_dnssec_verbs(CommandLine& line) {
  CLI::App* dnssec = line.group("dnssec", "zones that are signed here, and their keys");
  add_key_verbs(line, dnssec);
  add_signed_zone_verbs(line, dnssec);
}

void add_sign_verb(CommandLine& line, CLI::App* zone) {
  Arguments& given = line.arguments();
  CLI::App* sign = line.add(zone, "sign", "sign a zone file; needs no manager",
                            [&given] { return sign_zone_file(given.sign, output_for(given)); });
  SignRequest& request = given.sign;
  sign->add_option("file", request.file, "zone file")->required();
  CLI::Option* const key = sign->add_option("--key", request.keys.keys,
                                            "key file; those whose record has no SEP flag "
                                            "sign all but the keys, beside one that has it");
  CLI::Option* const ksk =
      sign->add_option("--ksk", request.keys.ksks, "key file of a key that has the SEP flag");
  CLI::Option* const zsk =
      sign->add_option("--zsk", request.keys.zsks, "key file of a key without the SEP flag");
  for (CLI::Option* option : {key, ksk, zsk}) option->allow_extra_args(false);
  sign->add_option("--origin", request.origin, "name of the zone, where key files do not name it");
  sign->add_option("--out", request.out, "file of the signed zone, instead of standard output");
  sign->add_option("--inception", request.inception,
                   "begin of the signatures: YYYYMMDDHHmmSS or seconds since 1970");
  sign->add_option("--expiration", request.expiration, "end of all signatures");
  sign->add_option("--serial", request.serial, "the SOA's serial")
      ->check(CLI::IsMember({"keep", "increment", "unixtime"}))
      ->capture_default_str();
  sign->add_flag("--cds", request.with_cds, "add CDS and CDNSKEY records of the keys");
  CLI::Option* const nsec3 = sign->add_flag("--nsec3", request.is_nsec3, "NSEC3 instead of NSEC");
  sign->add_flag("--opt-out", request.is_opt_out, "no NSEC3 records of delegations without DS")
      ->needs(nsec3);
  sign->add_option("--iterations", request.iterations, "of NSEC3's hash; RFC 9276 wants none")
      ->check(CLI::Range(0U, kMaxSignedIterations))
      ->needs(nsec3);
  sign->add_option("--salt", request.salt, "of NSEC3's hash, hexadecimal; RFC 9276 wants none")
      ->needs(nsec3);
}

}  // namespace pando::ctl
