// As the program does it (results/cli/main.cpp): pages of freed memory are kept.
#include <benchmark/benchmark.h>
#include <malloc.h>

int main(int argc, char** argv) {
  constexpr int kKept = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kKept);
  mallopt(M_TRIM_THRESHOLD, kKept);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
