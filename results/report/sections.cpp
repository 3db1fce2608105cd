#include "results/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "results/analysis/gaps.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/plot/narrow.hpp"
#include "results/report/html.hpp"
#include "results/text/words.hpp"
#include "scenarios/read/software_reader.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/base64.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::report {
namespace {

constexpr double kGib = 1 << 30;

double gib(Bytes b) { return static_cast<double>(b.value) / kGib; }

// Drawn twice: as wide as a screen, and for a phone.
std::string figure(const plot::Chart& chart, const std::string& alt, const std::string& caption) {
  const auto source = [](const plot::Chart& drawn) {
    return "data:image/svg+xml;base64," + base64(plot::to_svg(drawn));
  };
  return fmt::format(
      "<figure><picture><source media=\"(max-width: 720px)\" srcset=\"{}\">"
      "<img alt=\"{}\" src=\"{}\"></picture><figcaption>{}</figcaption></figure>\n",
      source(plot::narrow(chart)), html(alt), source(chart), html(caption));
}

// "internvl-6b-20b on 32 GPUs: baseline, omnibal".
std::string group_title(std::span<const results::RunResult> group) {
  std::string out = group[0].model.empty()
                        ? group[0].name
                        : fmt::format("{} on {} GPUs", group[0].model, group[0].gpus);
  for (std::size_t i = 0; i < group.size(); ++i) out += (i ? ", " : ": ") + group[i].strategy;
  return out;
}

// Under which each scenario is saved: name and strategy, and the hash where two would be one.
std::vector<std::string> file_names(std::span<const ReportRun> runs) {
  std::map<std::string, std::set<std::string>> hashes;
  const auto plain = [](const results::RunResult& run) { return run.name + "-" + run.strategy; };
  for (const ReportRun& r : runs) hashes[plain(r.result)].insert(r.result.scenario_hash);
  std::vector<std::string> out;
  for (const ReportRun& r : runs) {
    std::string name = plain(r.result);
    if (hashes[name].size() > 1) name += "-" + r.result.scenario_hash.substr(0, 8);
    std::ranges::replace(name, '/', '-');
    out.push_back(name + ".toml");
  }
  return out;
}

std::vector<std::string> assumptions_of(const results::RunResult& run) {
  std::vector<std::string> out;
  try {
    const scenarios::Node root = scenarios::parse_toml(run.scenario_text, run.name);
    const scenarios::Node* list = root.find("assumptions");
    if (list && list->is<scenarios::Node::Array>())
      for (const scenarios::Node& node : list->as<scenarios::Node::Array>())
        if (node.is<std::string>()) out.push_back(node.as<std::string>());
  } catch (const UserError&) {  // of another version: there is still the text itself
  }
  return out;
}

// The settings of the framework that were in force, each with where it comes from.
std::string software_table(const results::RunResult& run) {
  scenarios::Node table;
  try {
    const scenarios::Node root = scenarios::parse_toml(run.scenario_text, run.name);
    if (const scenarios::Node* written = root.find("software")) table = *written;
  } catch (const UserError&) {  // of another version: there is still the text itself
    return "";
  }
  std::string out =
      "<details><summary>Software settings</summary><div class=\"wide\"><table><thead><tr>"
      "<th scope=\"col\" class=\"word\">software.</th><th scope=\"col\">value</th>"
      "<th scope=\"col\" class=\"word\">from</th></tr></thead><tbody>\n";
  for (const scenarios::SoftwareSetting& s : scenarios::software_settings(table))
    out += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"word\">{}</td></tr>\n",
                       html(s.key), html(s.value), html(s.source));
  return out + "</tbody></table></div></details>\n";
}

}  // namespace

std::string timeline_section() {
  return "<section id=\"timeline-section\"><h2>Timeline</h2>\n"
         "<fieldset id=\"controls\" class=\"tools\" disabled><label>Run <select "
         "id=\"run\"></select></label>"
         "<label hidden>Step <select id=\"step\"></select></label>"
         "<button id=\"zoom-in\" type=\"button\">Zoom in</button>"
         "<button id=\"zoom-out\" type=\"button\">Zoom out</button>"
         "<button id=\"zoom-all\" type=\"button\">All</button>"
         "<button id=\"measure\" type=\"button\" aria-pressed=\"false\">Measure</button>"
         "<button id=\"fold\" type=\"button\" hidden>Fold replicas</button>"
         "<label><input id=\"causes\" type=\"checkbox\">Idle time by cause</label>"
         "<label>Search <input id=\"search\" type=\"search\" autocomplete=\"off\"></label>"
         "<span id=\"found\" role=\"status\"></span></fieldset>\n"
         "<canvas id=\"axis\" aria-hidden=\"true\"></canvas>\n"
         "<canvas id=\"timeline\" tabindex=\"0\" role=\"application\" "
         "aria-describedby=\"keys\"></canvas>\n"
         "<div class=\"tools\"><span id=\"range\" class=\"soft\"></span>"
         "<span id=\"hidden\" class=\"soft\"></span></div>\n"
         "<p id=\"details\" role=\"status\" aria-live=\"polite\"></p>\n"
         "<ul id=\"legend\" aria-label=\"Legend\"></ul>\n"
         "<p id=\"keys\" class=\"soft\">Drag pans, Ctrl + wheel zooms (the wheel alone once the "
         "timeline has the focus), double click zooms in, click selects; after Measure two clicks "
         "measure. A click on a replica's name folds it. Keys: left and right pan, + and - zoom, 0 "
         "shows all, comma and full stop select the span before and after, up and down other "
         "streams; Enter in the search, n and p go to the next and previous match; m measures, "
         "Escape ends what was selected or measured.</p>\n</section>\n";
}

std::string pictures_section(std::span<const ReportRun> runs, std::vector<std::string>& notes) {
  std::string out = "<section id=\"pictures\"><h2>Pictures</h2>\n";
  // Runs of one scenario share their axes; others would only squeeze each other.
  std::vector<std::vector<results::RunResult>> groups;
  for (const ReportRun& r : runs) {
    const auto same = [&](const auto& g) { return g.front().name == r.result.name; };
    const auto at = std::find_if(groups.begin(), groups.end(), same);
    if (at == groups.end())
      groups.push_back({r.result});
    else
      at->push_back(r.result);
  }
  try {
    for (const std::vector<results::RunResult>& group : groups) {
      const std::string& name = group.front().name;
      std::vector<results::RunResult> kept, timed;
      for (const results::RunResult& run : group) {
        if (!run.spans.empty()) kept.push_back(run);
        if (run.fits) timed.push_back(run);
      }
      out += fmt::format("<h3>{}</h3>\n", html(group_title(group)));
      if (!timed.empty())
        out += figure(charts::bubbles_chart(timed), "Idle time of " + name + " by stage and cause",
                      "Idle time by stage and cause; the percentage is of the step.");
      if (!kept.empty())
        out += figure(charts::memory_chart(kept, {}), "Memory of " + name + " over a step",
                      "Memory of a GPU of each stage over the first kept step, with what it has.");
    }
  } catch (const EnvironmentError& e) {
    notes.push_back(e.what());
    out += fmt::format("<p class=\"note\">No pictures here: {}</p>\n", html(e.what()));
  }
  return out + "</section>\n";
}

std::string plan_section(std::span<const ReportRun> runs) {
  std::string out = "<section id=\"plan\"><h2>Plan</h2>\n";
  for (const ReportRun& r : runs) {
    const results::RunResult& run = r.result;
    out += fmt::format(
        "<h3>{}</h3>\n<p>{}, {:.1f} B parameters, on {} GPUs of {}: tp {}, pp {}, {}dp {}, zero "
        "{}; "
        "global batch {}, {} micro-batches of {} per pipeline; {} granularity.</p>\n",
        label(run), html(run.model), static_cast<double>(run.parameters) / 1e9, run.gpus,
        html(run.cluster), run.tp, run.pp,
        (run.vpp > 1 ? fmt::format("vpp {}, ", run.vpp) : "") +
            (run.cp > 1 ? fmt::format("cp {}, ", run.cp) : ""),
        run.dp, run.zero_stage, run.global_batch_size, run.micro_batches, run.micro_batch_size,
        name_of(run.granularity));
    if (!run.facts.empty()) out += "<dl>";
    for (const Fact& fact : run.facts)
      out +=
          fmt::format("<dt>{}</dt><dd>{}</dd>", html(results::spaced(fact.key)), html(fact.text));
    if (!run.facts.empty()) out += "</dl>\n";
    out +=
        "<div class=\"wide\"><table class=\"plan\"><thead><tr><th scope=\"col\">stage</th>"
        "<th scope=\"col\" class=\"word\">layers</th><th scope=\"col\">forward ms</th>"
        "<th scope=\"col\">backward ms</th><th scope=\"col\">busy</th>"
        "<th scope=\"col\">weights GiB</th><th scope=\"col\">gradients</th>"
        "<th scope=\"col\">optimizer</th><th scope=\"col\">buffers</th>"
        "<th scope=\"col\">activations</th><th scope=\"col\">or copies of gradients</th>"
        "<th scope=\"col\">NCCL, CUDA, reserve</th>"
        "<th scope=\"col\">peak</th></tr></thead><tbody>\n";
    for (const results::StageRow& s : run.stages) {
      out += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"word\">{}</td>", s.stage,
                         html(s.layers));
      if (run.fits)
        out += cell(fmt::format("{:.1f}", s.forward.value * 1e3)) +
               cell(fmt::format("{:.1f}", s.backward.value * 1e3)) +
               cell(fmt::format("{:.1f} %", 100 * (s.busy / run.iteration)));
      else
        out += cell("-") + cell("-") + cell("-");
      for (const Bytes b :
           {s.held[Holding::weights], s.held[Holding::gradients] + s.held[Holding::model_gradients],
            s.held[Holding::optimizer], s.held[Holding::buckets] + s.held[Holding::workspaces],
            s.peak_activations, s.optimizer_step, s.held.total() - s.held.allocated(),
            s.peak_memory})
        out += cell(fmt::format("{:.1f}", gib(b)));
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
  }
  return out + "</section>\n";
}

namespace {

// The kernels whose measurement would replace most of the estimated time, and how to measure them.
std::string measure_first(const ReportRun& r) {
  double share = 0;
  std::string list;
  for (const results::GapRow& gap : r.result.gaps) {
    share += gap.share;
    list += fmt::format("<li>{}: {:.1f} %</li>\n", html(gap.kernel), 100 * gap.share);
  }
  return fmt::format(
      "<li>These {} measurements would replace {:.1f} % of kernel time:\n<ul class=\"gaps\">\n{}"
      "</ul><pre>{}</pre></li>\n",
      r.result.gaps.size(), 100 * share, list, html(analysis::measure_command({r.directory})));
}

}  // namespace

std::string assumptions_section(std::span<const ReportRun> runs) {
  constexpr std::array<const char*, costs::kSources> kNames = {
      "measured", "interpolated between measurements", "transferred from another machine",
      "estimated"};
  std::string out = "<section id=\"assumptions\"><h2>Assumptions</h2>\n";
  for (const ReportRun& r : runs) {
    out += fmt::format("<h3>{}</h3>\n<ul>\n", label(r.result));
    for (const std::string& a : assumptions_of(r.result))
      out += fmt::format("<li>{}</li>\n", html(a));
    std::string rest;
    for (std::size_t i = 0; i < costs::kSources; ++i)
      if (r.result.source_shares[i] > 0.0005)
        rest += fmt::format("{}{:.1f} % {}", rest.empty() ? "" : ", ",
                            100 * r.result.source_shares[i], kNames[i]);
    out +=
        fmt::format("<li>Kernel times: {}.</li>\n", rest.empty() ? "given by the scenario" : rest);
    if (!r.result.gaps.empty()) out += measure_first(r);
    if (r.result.simulated_steps == 1)
      out += "<li>One step was simulated and stands for all.</li>\n";
    else
      out += fmt::format("<li>{} steps were simulated; figures are their means.</li>\n",
                         r.result.simulated_steps);
    out += "</ul>\n" + software_table(r.result);
  }
  return out + "</section>\n";
}

std::string reproduce_section(std::span<const ReportRun> runs) {
  std::string out =
      "<section id=\"reproduce\"><h2>How to reproduce</h2>\n<p>Save the scenario, which has all "
      "files merged and overrides applied, and run it. The same version gives the same "
      "bytes.</p>\n";
  const std::vector<std::string> files = file_names(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ReportRun& r = runs[i];
    const results::RunResult& run = r.result;
    const std::string file = html(files[i]);
    out += fmt::format("<h3>{}</h3>\n<pre>mllmsim run {}</pre>\n", label(run), file);
    out += fmt::format(
        "<p><a download=\"{}\" href=\"data:text/plain;charset=utf-8;base64,{}\">{}</a></p>\n"
        "<details><summary>Show it</summary><pre>{}</pre></details>\n",
        file, base64(run.scenario_text), file, html(run.scenario_text));
    out += "<dl>";
    for (const auto& [key, value] :
         {std::pair<const char*, std::string>{"scenario", run.scenario_hash},
          {"calibration", run.calibration_hash.empty() ? "none" : run.calibration_hash},
          {"events", run.event_digest},
          {"seed", std::to_string(run.seed)},
          {"version", r.version},
          {"read from", r.directory}})
      out += fmt::format("<dt>{}</dt><dd>{}</dd>", key, html(value));
    out += "</dl>\n";
  }
  return out + "</section>\n";
}

}  // namespace mllmsim::report
