#include <iostream>

#include "ctl/command_line.h"
#include "ctl/verbs.h"

int main(int argc, char** argv) {
  using namespace pando::ctl;  // NOLINT: a program's main file
  std::ios::sync_with_stdio(false);
  CommandLine line;
  add_verbs(line);
  const int code = line.run(argc, argv);
  if (std::cout.flush()) return code;
  std::cerr << "pandoctl: the output cannot be written\n";
  return code != 0 ? code : 1;
}
