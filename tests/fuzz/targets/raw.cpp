// Raw measurements, JSON lines and CSV, and a fit to those that can be read; the same lines as
// shapes for the measuring program.
#include "cost_models/calibrate/plan.hpp"
#include "cost_models/calibration/estimate.hpp"
#include "cost_models/fit/fit.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void use(const fit::RawData& raw) {
  const std::string lines = fit::to_json_lines(raw);
  if (fit::parse_raw(lines, "again.jsonl").size() != raw.size())
    throw std::logic_error("measurements that are others when read again");
  constexpr std::size_t kFitted = 100;  // more only take longer
  if (raw.size() > kFitted) return;
  const costs::Calibration fitted =
      fit::fit(raw, costs::estimated_calibration("a gpu", fit::measured_sheet(raw)));
  costs::parse_calibration(costs::to_json(fitted), "fitted.json");
}

void read(const std::string& bytes) {
  attempt([&] { use(fit::parse_raw(bytes, "raw.jsonl")); });
  attempt([&] { use(fit::parse_raw_csv(bytes, "raw.csv")); });
  calibrate::PlanOptions options;
  options.shapes = calibrate::read_shapes(scratch_file("shapes.jsonl", bytes));
  options.parts = {"launch"};
  calibrate::make_plan(options).text();
}

const Registered kTarget("raw", read);

}  // namespace
}  // namespace mllmsim::fuzz
