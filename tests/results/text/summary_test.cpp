#include "results/text/summary.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <sstream>

#include "results/text/text_table.hpp"
#include "tests/results/example_run.hpp"

namespace mllmsim {
using namespace costs;
using namespace results;
namespace {

TEST(Summary, OneRun) {
  EXPECT_EQ(summary(example_run(), {.utf8 = true}),
            R"(tiny (baseline)
  ViT-1B + GPT-7B, 8.00 B parameters, on 16 GPUs of a100-sxm
  tp 4  pp 2  dp 2  zero 1  global batch 64: 32 micro-batches of 1 per pipeline

  iteration    10.00 s           GPU-days    34.72 for 1.20 M samples
  samples      64.00 per step    wall clock  2.2 days on 16 GPUs
  throughput   6.400 samples/s   per GPU     819.2 tokens/s
  MFU          40.0%             HFU         50.0%
  peak memory  61.0 of 80.0 GiB  simulated   2 steps, stage granularity

  kernel times: 75% interpolated between measurements, 25% estimated

  step time           share
  busy                75.0%  ███████████████████████░░░░░░░
  pipeline warm-up    15.0%  █████░░░░░░░░░░░░░░░░░░░░░░░░░
  pipeline cool-down  10.0%  ███░░░░░░░░░░░░░░░░░░░░░░░░░░░

  plan
  bound s  9.5 s

  stage  layers                                         fwd ms  bwd ms   busy  bubbles    memory GiB
      0  ViT-1B.embedding, 24 x ViT-1B.block, ViT-1...   80.00   160.0  80.0%    20.0%  61.0 of 80.0
      1  24 x GPT-7B.block, GPT-7B.head                  80.00   160.0  70.0%    30.0%  51.0 of 80.0
)");
}

TEST(Summary, BarsNeedNoUtf8) {
  EXPECT_NE(summary(example_run(), {.utf8 = false}).find("#######......."), std::string::npos);
}

// Not simulated: what there is to say is why, and which stage is too large.
TEST(Summary, ARunThatDoesNotFitSaysWhy) {
  RunResult run = example_run();
  run.fits = false;
  run.reason = "stage 0 needs 93.1 GiB of 80.0 GiB";
  run.simulated_steps = 0;
  run.stages.clear();
  run.facts.clear();
  EXPECT_EQ(summary(run, {}),
            R"(tiny (baseline)
  ViT-1B + GPT-7B, 8.00 B parameters, on 16 GPUs of a100-sxm
  tp 4  pp 2  dp 2  zero 1  global batch 64: 32 micro-batches of 1 per pipeline
  DOES NOT FIT: stage 0 needs 93.1 GiB of 80.0 GiB
)");
}

TEST(Summary, SeveralRunsEndWithAComparison) {
  RunResult large = example_run();
  large.name = "a run whose name is longer than a line of the comparison has room for";
  large.fits = false;
  RunResult faster = example_run();
  faster.strategy = "balanced";
  faster.gpu_days *= 0.8;
  const std::vector<RunResult> runs = {example_run(), faster, large};
  EXPECT_EQ(
      comparison(runs),
      R"(run                       strategy  GPUs  iteration s  GPU-days   days    MFU  bubbles    memory GiB
tiny                      baseline    16        10.00     34.72  2.170  40.0%    25.0%  61.0 of 80.0
tiny                      balanced    16        10.00     27.78  1.736  40.0%    25.0%  61.0 of 80.0
a run whose name is l...  baseline    16            -         -      -      -        -  does not fit
)");
  EXPECT_EQ(summaries(runs, {}), summary(runs[0], {}) + "\n" + summary(runs[1], {}) + "\n" +
                                     summary(runs[2], {}) + "\n" + comparison(runs));
  EXPECT_EQ(summaries(std::span(runs).first(1), {}), summary(runs[0], {}));
}

// Long names everywhere and large figures: what may be shortened or wrapped is.
TEST(Summary, NoLineIsWiderThan100Columns) {
  const std::string words = "a name that goes on and on, ";
  RunResult run = example_run();
  run.name = run.strategy = run.model = run.reason = words + words + words + words + words;
  run.fits = false;
  run.vpp = 12;
  run.global_batch_size = run.micro_batches = 10240;
  run.stages[0].layers = run.name;
  run.stages[0].forward = run.stages[0].backward = Seconds{123.4};
  std::istringstream lines(summaries(std::vector<RunResult>{run, run}, {}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(text_width(line), 100U) << line;
}

TEST(Summary, TheFirstLocaleVariableThatIsSetDecides) {
  ::setenv("LC_ALL", "", 1);
  ::setenv("LC_CTYPE", "C", 1);
  ::setenv("LANG", "en_US.UTF-8", 1);
  EXPECT_FALSE(utf8_locale());
  ::setenv("LC_ALL", "C.utf8", 1);
  EXPECT_TRUE(utf8_locale());
}

TEST(TextTable, AlignsByCharactersNotBytes) {
  TextTable table({{"name", Align::left}, {"n"}});
  table.add_row({"é", "1"});
  table.add_row({"longer", "10"});
  EXPECT_EQ(table.text(1, 80), " name     n\n é        1\n longer  10\n");
}

TEST(TextTable, ShortensTheColumnsThatMayShrink) {
  TextTable table({{"name", Align::left, true}, {"n"}});
  table.add_row({"a long name", "1"});
  EXPECT_EQ(table.text(0, 10), "name     n\na lo...  1\n");
}

TEST(TextTable, WrapsWords) { EXPECT_EQ(wrapped("one two three", 2, 10), "  one two\n  three\n"); }

}  // namespace
}  // namespace mllmsim
