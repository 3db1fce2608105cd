#include "cost_models/calibrate/plan.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <fstream>

#include "cost_models/calibrate/shapes.hpp"
#include "sim/base/errors.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim::calibrate {
using namespace costs;
namespace {

std::size_t count(const Plan& plan, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(plan.tasks.begin(), plan.tasks.end(),
                    [name](const Task& task) { return part(task) == name; }));
}

TEST(Plan, HasEveryPartAndTakesTheTimeAskedFor) {
  for (bool quick : {false, true}) {
    PlanOptions options;
    options.quick = quick;
    options.target_s = quick ? 120 : 1200;
    const Plan plan = make_plan(options);
    for (std::string_view name : kParts) EXPECT_GT(count(plan, name), 0u) << name;
    EXPECT_NEAR(plan.estimate_s() / options.target_s, 1, 0.1);
  }
}

TEST(Plan, CoversAtLeast250GemmShapesInThreePasses) {
  PlanOptions options;
  std::map<GemmPass, std::set<std::array<std::int64_t, 3>>> shapes;
  for (const Task& task : make_plan(options).tasks)
    if (const auto* t = std::get_if<GemmTask>(&task))
      shapes[t->gemm.pass].insert({t->gemm.m, t->gemm.n, t->gemm.k});
  EXPECT_EQ(shapes.size(), 3u);
  for (const auto& [pass, of_pass] : shapes) EXPECT_GE(of_pass.size(), 249u);
}

TEST(Plan, NothingTwice) {
  std::set<std::string> keys;
  PlanOptions options;
  options.models = {{4096, 16384, 32, 32, 1}};  // shares shapes with the built-in list
  for (const Task& task : make_plan(options).tasks) EXPECT_TRUE(keys.insert(key(task)).second);
}

TEST(Plan, OnlyTheSelectedParts) {
  PlanOptions options;
  options.parts = {"copy", "launch"};
  const Plan plan = make_plan(options);
  EXPECT_EQ(plan.tasks.size(), count(plan, "copy") + count(plan, "launch"));
}

// 4 GPUs: groups of 2 and 4; one GPU: nothing to communicate with.
TEST(Plan, GroupsFitTheMachine) {
  PlanOptions options;
  options.gpus = 4;
  std::set<int> ranks;
  for (const Task& task : make_plan(options).tasks)
    if (std::holds_alternative<CollectiveTask>(task)) ranks.insert(group(task).ranks);
  EXPECT_EQ(ranks, (std::set<int>{2, 4}));
  options.gpus = 1;
  const Plan alone = make_plan(options);
  EXPECT_EQ(count(alone, "collective") + count(alone, "p2p") + count(alone, "overlap"), 0u);
}

// Other nodes take part in these only, so they come first and the others can leave.
TEST(Plan, TasksAcrossNodesComeFirst) {
  PlanOptions options;
  options.nodes = 2;
  const Plan plan = make_plan(options);
  const auto spans = [](const Task& task) { return group(task).nodes > 1; };
  EXPECT_TRUE(spans(plan.tasks.front()));
  EXPECT_TRUE(std::is_partitioned(plan.tasks.begin(), plan.tasks.end(), spans));
}

TEST(Plan, LeavesOutWhatIsTooLarge) {
  PlanOptions options;
  options.most_flops = 1e9;
  options.most_bytes = 1e6;
  for (const Task& task : make_plan(options).tasks) {
    EXPECT_LE(work(task).flops, 1e9);
    EXPECT_LE(work(task).bytes, 1e6);
  }
}

// tokens 2, inputs 3, outputs 5: y[2,5] = x[2,3] W; dx[2,3] = dy[2,5] W; dW[3,5] over 2 tokens.
TEST(Plan, ALinearLayerIsThreeGemms) {
  const std::vector<Gemm> gemms = linear_layer(2, 3, 5);
  EXPECT_EQ(gemms[0], (Gemm{2, 5, 3, GemmPass::forward, 1}));
  EXPECT_EQ(gemms[1], (Gemm{2, 3, 5, GemmPass::input_gradient, 1}));
  EXPECT_EQ(gemms[2], (Gemm{3, 5, 2, GemmPass::weight_gradient, 1}));
}

// hidden 8, ffn 32, 4 heads of 2, 2 key-value heads, tp 2: qkv has (4 + 2 + 2) * 2 / 2 outputs.
TEST(Plan, AModelAddsItsLayers) {
  PlanOptions options;
  options.models = {parse_model("8,32,4,2,2")};
  std::set<std::string> keys;
  for (const Task& task : make_plan(options).tasks) keys.insert(key(task));
  EXPECT_TRUE(keys.count(key(GemmTask{{1024, 8, 8, GemmPass::forward, 1}, Mode::burst})));
  EXPECT_TRUE(keys.count(key(GemmTask{{1024, 32, 8, GemmPass::forward, 1}, Mode::burst})));
  EXPECT_TRUE(keys.count(key(AttentionTask{4096, 1, 2, 1, 2, true, true})));
}

TEST(Plan, RejectsAModelThatDoesNotDivide) {
  for (const char* text : {"", "8", "8,32,4,2", "8,32,4,2,3", "8,32,3,1,1", "8,32,4,2,2,", "a,b"})
    EXPECT_THROW(parse_model(text), UserError) << text;
}

TEST(Shapes, AGemmWithoutPassStandsForThreeAndResultsAreIgnored) {
  const TemporaryDirectory directory;
  const auto file = directory / "gaps.jsonl";
  std::ofstream(file) << R"({"header":{"gpu":"x"}})"
                      << "\n"
                      << R"({"m":96,"n":48,"k":32})"
                      << "\n\n"
                      << R"({"part":"gemm","m":1,"n":2,"k":3,"pass":"weight_gradient","us":9.5})"
                      << "\n"
                      << R"({"part":"attention","length":7,"batch":1,"heads":2,"head_dim":64})"
                      << "\n";
  const std::vector<Task> tasks = read_shapes(file);
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(std::get<GemmTask>(tasks[2]).gemm.pass, GemmPass::weight_gradient);
  EXPECT_EQ(std::get<GemmTask>(tasks[3]).gemm, (Gemm{1, 2, 3, GemmPass::weight_gradient, 1}));
  EXPECT_EQ(std::get<AttentionTask>(tasks[4]).kv_heads, 2);

  PlanOptions options;
  options.shapes = tasks;
  EXPECT_EQ(key(make_plan(options).tasks[4]), key(tasks[4]));
}

TEST(Shapes, AnErrorNamesFileLineAndKey) {
  const TemporaryDirectory directory;
  const auto file = directory / "gaps.jsonl";
  const auto message = [&file](const std::string& line) {
    std::ofstream(file) << R"({"m":1,"n":1,"k":1})"
                        << "\n"
                        << line << "\n";
    try {
      read_shapes(file);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(R"({"m":0,"n":1,"k":1})"),
            file.string() + ":2: m: expected a positive whole number");
  EXPECT_EQ(message(R"({"m":1,)"), file.string() + ":2:8: not valid JSON: incomplete JSON");
  EXPECT_EQ(message(R"({"part":"p2p","bytes":"1"})"),
            file.string() + ":2: bytes: expected a positive whole number");
  EXPECT_EQ(message(R"({"part":"collective","op":"sum","bytes":1})"),
            file.string() +
                ":2: op: expected \"all_gather\", \"reduce_scatter\", "
                "\"all_reduce\" or \"all_to_all\"");
  EXPECT_THROW(read_shapes(directory / "absent"), UserError);
}

// Every kind of task survives the way through JSON.
TEST(Task, ReadsWhatItWrites) {
  PlanOptions options;
  options.nodes = 2;
  for (const Task& task : make_plan(options).tasks) {
    const boost::json::value line = boost::json::parse(key(task));
    EXPECT_EQ(key(task_from_json(line.as_object(), "test")), key(task));
  }
}

}  // namespace
}  // namespace mllmsim::calibrate
