#include "results/run/run_tables.hpp"

#include <gtest/gtest.h>

#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "tests/results/example_run.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim {
using namespace costs;
using namespace results;
using namespace tables;
namespace {

std::string column_names(const Table& table) {
  std::string out;
  for (const auto& [name, column] : table.columns) out += (out.empty() ? "" : " ") + name;
  return out;
}

// People's queries depend on these names: a change here is a change of the file format.
TEST(RunTables, ColumnNames) {
  EXPECT_EQ(
      column_names(runs_table({})),
      "run strategy scenario_hash model cluster work calibration_hash seed granularity gpus tp "
      "pp vpp cp dp zero_stage micro_batch_size global_batch_size micro_batches parameters "
      "feasible fits reason iteration_s simulated_steps event_digest samples samples_per_step "
      "gpu_days days "
      "samples_per_s "
      "tokens_per_s_per_gpu samples_per_micro_batch pass_steps pad_ratio dist_ratio_tiles "
      "dist_ratio_tokens model_flops hardware_flops mfu hfu mfu_6nd bubble_share "
      "bubble_share_dp_all_gather bubble_share_dp_reduce_scatter bubble_share_pp_warmup "
      "bubble_share_pp_cooldown bubble_share_pp_other bubble_share_tp bubble_share_dp_wait "
      "bubble_share_encoder_wait cost_share_measured cost_share_interpolated "
      "cost_share_transferred cost_share_estimate peak_memory_bytes gpu_memory_bytes");
  EXPECT_EQ(column_names(plan_table({})), "run strategy scenario_hash key text number");
  EXPECT_EQ(column_names(stages_table({})),
            "run strategy scenario_hash stage layers blocks recomputed_blocks parameters forward_s "
            "backward_s busy_s "
            "bubble_s bubble_dp_all_gather_s bubble_dp_reduce_scatter_s bubble_pp_warmup_s "
            "bubble_pp_cooldown_s bubble_pp_other_s bubble_tp_s bubble_dp_wait_s "
            "bubble_encoder_wait_s weights_bytes gradients_bytes model_gradients_bytes "
            "optimizer_bytes buckets_bytes workspaces_bytes communicators_bytes context_bytes "
            "reserve_bytes peak_activations_bytes saved_activations_bytes optimizer_step_bytes "
            "peak_allocated_bytes peak_reserved_bytes allocator_retries peak_memory_bytes "
            "peak_memory_p50_bytes peak_memory_p99_bytes");
  EXPECT_EQ(column_names(steps_table({})),
            "run strategy scenario_hash step replica iteration_s micro_batches samples llm_tokens "
            "tiles bubble_share");
  EXPECT_EQ(column_names(spans_table({})),
            "run strategy scenario_hash step replica stage stream kind name micro_batch chunk "
            "start_ns end_ns bytes");
  EXPECT_EQ(column_names(memory_table({})),
            "run strategy scenario_hash step replica stage time_ns memory_bytes working_bytes "
            "copies_bytes");
  EXPECT_EQ(column_names(gaps_table({})), "run strategy scenario_hash kernel source share");
}

TEST(RunTables, RowsOfSeveralRunsFollowEachOther) {
  std::vector<RunResult> runs = {example_run(), example_run()};
  runs[1].name = "other";
  const Table table = stages_table(runs);
  const auto& names = std::get<StringColumn>(*table.find("run"));
  ASSERT_EQ(table.rows(), 4U);  // two stages each
  EXPECT_EQ(names[1], "tiny");
  EXPECT_EQ(names[2], "other");
}

TEST(RunTables, TotalsFollowFromTheirParts) {
  const std::vector<RunResult> runs = {example_run()};
  EXPECT_DOUBLE_EQ(std::get<std::vector<double>>(*runs_table(runs).find("bubble_share"))[0],
                   0.15 + 0.1);
  EXPECT_DOUBLE_EQ(std::get<std::vector<double>>(*stages_table(runs).find("bubble_s"))[1],
                   2.0 + 1.0);
}

// Tables and metadata hold every field, so equal tables mean equal runs.
TEST(RunTables, ReadRunGivesBackWhatWriteRunWrote) {
  const TemporaryDirectory dir;
  const std::vector<RunResult> written = {example_run()};
  write_run(written[0], dir / "results/tiny");
  const std::vector<RunResult> read = {read_run(dir / "results/tiny")};
  EXPECT_EQ(runs_table(read), runs_table(written));
  EXPECT_EQ(plan_table(read), plan_table(written));
  EXPECT_EQ(stages_table(read), stages_table(written));
  EXPECT_EQ(steps_table(read), steps_table(written));
  EXPECT_EQ(spans_table(read), spans_table(written));
  EXPECT_EQ(memory_table(read), memory_table(written));
  EXPECT_EQ(gaps_table(read), gaps_table(written));
  EXPECT_EQ(run_metadata(read[0]), run_metadata(written[0]));
}

// No plan was found: sizes are known, figures are not.
TEST(RunTables, WhatWasNotSimulatedIsNull) {
  RunResult run = example_run();
  run.simulated_steps = 0;
  run.fits = false;
  const std::vector<RunResult> runs = {example_run(), run};
  const Table table = runs_table(runs);
  for (const char* figure : {"iteration_s", "gpu_days", "days", "mfu", "peak_memory_bytes"}) {
    EXPECT_FALSE(table.is_null(figure, 0)) << figure;
    EXPECT_TRUE(table.is_null(figure, 1)) << figure;
  }
  for (const char* known : {"gpus", "tp", "feasible", "fits", "reason", "simulated_steps"})
    EXPECT_FALSE(table.is_null(known, 1)) << known;
  EXPECT_FALSE(std::get<std::vector<bool>>(*table.find("feasible"))[1]);
}

TEST(RunTables, EveryFileSaysWhatItCameFrom) {
  const TemporaryDirectory dir;
  write_run(example_run(), dir.path());
  for (const char* table : {"runs", "plan", "stages", "steps", "spans", "memory", "gaps"}) {
    const Metadata metadata = read_parquet(dir / (std::string(table) + ".parquet")).metadata;
    EXPECT_EQ(metadata, run_metadata(example_run())) << table;
  }
}

TEST(RunTables, AFileWithoutOurColumnsIsNamed) {
  const TemporaryDirectory dir;
  write_run(example_run(), dir.path());
  write_parquet(Table{{{"step", std::vector<double>{1}}}}, {}, dir / "spans.parquet");
  try {
    read_run(dir.path());
    FAIL();
  } catch (const EnvironmentError& e) {
    EXPECT_EQ(std::string(e.what()), "cannot read " + (dir / "spans.parquet").string() +
                                         ": no column step of the expected type");
  }
}

// A bubble's name is its kind; everything else has the name it was given.
TEST(RunTables, SpansAreTextsInFiles) {
  const std::vector<RunResult> runs = {example_run()};
  const Table table = spans_table(runs);
  const auto text = [&](const char* column, std::size_t row) {
    return std::get<StringColumn>(*table.find(column))[row];
  };
  EXPECT_EQ(text("stream", 1), "pp_send_next");
  EXPECT_EQ(text("kind", 1), "pp_send");
  EXPECT_EQ(text("name", 1), "activations");
  EXPECT_EQ(text("kind", 2), "bubble");
  EXPECT_EQ(text("name", 2), "pp_cooldown");
}

TEST(RunTables, ReadingParsesABubble) {
  const TemporaryDirectory dir;
  write_run(example_run(), dir.path());
  const SpanRow bubble = read_run(dir.path()).spans.back();
  EXPECT_EQ(bubble.kind, SpanKind::bubble);
  EXPECT_EQ(bubble.bubble, BubbleKind::pp_cooldown);
  EXPECT_EQ(bubble.name, "");
}

// The first span is on "compute"; a file says "warp" instead.
TEST(RunTables, AStreamThatNobodyKnowsIsNamed) {
  const TemporaryDirectory dir;
  const std::vector<RunResult> runs = {example_run()};
  write_run(runs[0], dir.path());
  Table table = spans_table(runs);
  for (auto& [name, column] : table.columns)
    if (name == "stream") {
      StringColumn streams;
      for (const char* text : {"warp", "pp_send_next", "compute"}) streams.push_back(text);
      column = streams;
    }
  write_parquet(table, {}, dir / "spans.parquet");
  try {
    read_run(dir.path());
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.problems().front().where, (dir / "spans.parquet").string());
    EXPECT_EQ(e.problems().front().key, "stream");
    EXPECT_TRUE(e.problems().front().message.ends_with("; found \"warp\"")) << e.what();
  }
}

TEST(RunTables, ASweepIsNotOneRun) {
  const TemporaryDirectory dir;
  const std::vector<RunResult> runs = {example_run(), example_run()};
  write_parquet(runs_table(runs), {}, dir / "runs.parquet");
  EXPECT_THROW(read_run(dir.path()), EnvironmentError);
}

}  // namespace
}  // namespace mllmsim
