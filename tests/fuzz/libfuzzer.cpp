// What libFuzzer calls: `fuzz --target=NAME [libFuzzer's options] CORPUS...`
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const mllmsim::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *argc; ++i)
    if (const std::string_view word = (*argv)[i]; word.starts_with(kOption))
      chosen = mllmsim::fuzz::find_target(word.substr(kOption.size()));
  if (chosen) return 0;
  std::fprintf(stderr, "fuzz: expected --target=NAME, one of tests/fuzz/targets\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  mllmsim::fuzz::attempt([&] { chosen->read(bytes); });
  return 0;
}
