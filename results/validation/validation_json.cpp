#include <boost/json.hpp>

#include "results/validation/validation_cells.hpp"
#include "results/validation/validation_report.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::validation {
namespace {

namespace json = boost::json;

json::object object_of(const SourceSummary& s) {
  json::object out{{"source", s.source.empty() ? "all" : s.source},
                   {"rows", s.errors.rows},
                   {"median", s.errors.median},
                   {"p90", s.errors.p90},
                   {"mean", s.errors.mean},
                   {"largest", s.errors.largest},
                   {"bias", s.errors.bias},
                   {"rank_correlation", nullptr},
                   {"speedups", s.speedups},
                   {"speedup_error", nullptr},
                   {"yes_no", s.flags},
                   {"yes_no_right", s.right},
                   {"said_not_to_fit", json::value_from(s.misfits)}};
  if (s.rank_correlation) out["rank_correlation"] = *s.rank_correlation;
  if (s.speedups > 0) out["speedup_error"] = s.speedup_error;
  return out;
}

json::object object_of(const std::vector<AblationRow>& rows) {
  json::array knobs, sources;
  for (const Knob& knob : fitted_knobs())
    knobs.push_back(json::object{
        {"name", knob.name}, {"neutral", knob.neutral}, {"chosen_with", knob.chosen_with}});
  const auto cell = [](const AblationCell& c) {
    json::object out{{"median", c.median}, {"speedup_error", nullptr}};
    if (c.speedup) out["speedup_error"] = *c.speedup;
    return out;
  };
  for (const AblationRow& row : rows) {
    json::array each;
    for (std::size_t i = 2; i < row.cells.size(); ++i) each.push_back(cell(row.cells[i]));
    sources.push_back(json::object{{"source", row.source},
                                   {"all_evidence", cell(row.cells[0])},
                                   {"all_neutral", cell(row.cells[1])},
                                   {"each_neutral", std::move(each)}});
  }
  return {{"knobs", std::move(knobs)}, {"sources", std::move(sources)}};
}

}  // namespace

std::string validation_json(const Validation& validation,
                            std::span<const scenarios::PublishedFamily> families,
                            const FurtherTables& further) {
  json::array rows, speedups, sources, skipped, changes;
  for (const ValidationRow& row : validation.rows)
    rows.push_back(json::object{{"id", row.id},
                                {"source", row.source},
                                {"metric", row.metric},
                                {"predicted", row.predicted},
                                {"published", row.published},
                                {"relative_error", row.relative_error},
                                {"fits", row.fits},
                                {"family", row.family},
                                {"scenario_hash", row.scenario_hash},
                                {"calibration_hash", row.calibration_hash}});
  for (const SpeedupRow& row : validation.speedups)
    speedups.push_back(json::object{{"id", row.id},
                                    {"over", row.over},
                                    {"source", row.source},
                                    {"predicted", row.predicted},
                                    {"published", row.published},
                                    {"relative_error", row.relative_error}});
  for (const SourceSummary& s : summarise_by_source(validation)) {
    json::object object = object_of(s);
    object["missed"] = missed_targets(target_of(s.source, families), s);
    sources.push_back(std::move(object));
  }
  for (const scenarios::PublishedFamily& f : families) {
    if (!f.skipped.empty())
      skipped.push_back(json::object{{"source", f.source}, {"reason", f.skipped}});
    for (const scenarios::LeftOut& left : f.left_out)
      skipped.push_back(
          json::object{{"source", f.source}, {"reason", left.because}, {"rows", left.rows}});
  }
  for (const SensitivityRow& row : further.sensitivity) {
    json::object object{{"id", row.id}, {"source", row.source}};
    for (std::size_t i = 0; i < kSensitivityParts.size(); ++i)
      object[kSensitivityParts[i]] = row.change[i];
    changes.push_back(std::move(object));
  }
  return pretty_json(
      json::object{{"rows", std::move(rows)},
                   {"speedups", std::move(speedups)},
                   {"summary", json::object{{"all", object_of(summarise(validation, ""))},
                                            {"sources", std::move(sources)}}},
                   {"skipped", std::move(skipped)},
                   {"sensitivity", std::move(changes)},
                   {"ablation", object_of(further.ablation)}});
}

}  // namespace mllmsim::validation
