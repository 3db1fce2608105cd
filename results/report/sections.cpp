#include "results/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "results/analysis/speed_up.hpp"
#include "results/charts/span_look.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/report/html.hpp"
#include "results/run/run_fields.hpp"
#include "scenarios/read/software_reader.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/base64.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::report {
namespace {

constexpr double kGib = 1 << 30;

double gib(Bytes b) { return static_cast<double>(b.value) / kGib; }

std::string label(const results::RunResult& run) {
  return html(fmt::format("{} ({})", run.name, run.strategy));
}

std::string cell(const std::string& text) { return "<td>" + text + "</td>"; }

bool same_work(const ReportRun& a, const ReportRun& b) { return a.result.work == b.result.work; }

// The run of fewest GPU-days among those that fit; those of other work are not comparable.
const results::RunResult* best_of(std::span<const ReportRun> runs) {
  const results::RunResult* best = nullptr;
  for (const ReportRun& r : runs) {
    if (!same_work(r, runs[0])) return nullptr;
    if (r.result.fits && (!best || r.result.gpu_days < best->gpu_days)) best = &r.result;
  }
  return runs.size() > 1 ? best : nullptr;
}

// `first`: the run it is compared with; null if no other does the same work.
std::string summary_row(const results::RunResult& run, const results::RunResult* first, bool best) {
  std::string out =
      fmt::format("<tr{}><th scope=\"row\" class=\"word\">{}{}</th>", best ? " class=\"best\"" : "",
                  label(run), best ? " - fewest GPU-days" : "");
  out += cell(std::to_string(run.gpus));
  out += cell(fmt::format("{} / {}{} / {}", run.tp, run.pp,
                          run.vpp > 1 ? fmt::format(" x {}", run.vpp) : "", run.dp));
  if (!run.fits)
    return out + fmt::format("<td class=\"word\" colspan=\"8\">does not fit: {}</td></tr>\n",
                             html(run.reason));
  const std::optional<double> speed_up =
      first ? analysis::speed_up(analysis::cost_of(run), analysis::cost_of(*first)) : std::nullopt;
  out += cell(fmt::format("{:.4g}", run.iteration.value)) +
         cell(fmt::format("{:.4g}", run.gpu_days)) +
         cell(fmt::format("{:.4g}", results::wall_clock_days(run)));
  out += cell(speed_up ? fmt::format("{:.2f} x", *speed_up) : "-");
  out +=
      cell(fmt::format("{:.1f} %", 100 * run.mfu)) + cell(fmt::format("{:.1f} %", 100 * run.hfu));
  out += cell(fmt::format("{:.1f} %", 100 * results::bubble_share(run)));
  return out + cell(fmt::format("{:.1f} of {:.1f}", gib(run.peak_memory), gib(run.gpu_memory))) +
         "</tr>\n";
}

// A part of a stacked bar, in the look it has in timelines.
std::string bar_part(const charts::SpanLook& look, const std::string& name, double share) {
  if (share <= 0) return "";
  const std::string colour = fmt::format("#{:06x}", look.colour);
  const auto stripes = [&](const char* angle) {
    return fmt::format("repeating-linear-gradient({0},{1} 0 2px,transparent 2px 7px)", angle,
                       colour);
  };
  std::string background = colour;
  if (look.fill == plot::Fill::rising) background = stripes("-45deg");
  if (look.fill == plot::Fill::falling) background = stripes("45deg");
  if (look.fill == plot::Fill::crossed) background = stripes("45deg") + "," + stripes("-45deg");
  const std::string text = fmt::format("{} {:.1f} %", name, 100 * share);
  return fmt::format("<span{} style=\"width:{:.3f}%;background:{}\" title=\"{}\">{}</span>",
                     look.dark ? " class=\"dark\"" : "", 100 * share, background, html(text),
                     share > 0.012 * static_cast<double>(text.size()) ? html(text) : "");
}

std::string figure(const plot::Chart& chart, const std::string& alt, const std::string& caption) {
  return fmt::format(
      "<figure><img alt=\"{}\" src=\"data:image/svg+xml;base64,{}\"><figcaption>{}</figcaption>"
      "</figure>\n",
      html(alt), base64(plot::to_svg(chart)), html(caption));
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

std::string summary_section(std::span<const ReportRun> runs) {
  const results::RunResult* best = best_of(runs);
  std::string out =
      "<section id=\"summary\"><h2>Summary</h2><div class=\"wide\"><table>\n"
      "<caption>Speed-up: GPU-days for the same samples, of the first run of the same model, data "
      "and samples, over the run's. A dash: no other run does the same work.</caption>\n"
      "<thead><tr><th scope=\"col\" class=\"word\">run (strategy)</th><th scope=\"col\">GPUs</th>"
      "<th scope=\"col\">tp / pp / dp</th><th scope=\"col\">step s</th>"
      "<th scope=\"col\">GPU-days</th><th scope=\"col\">days</th>"
      "<th scope=\"col\">speed-up</th><th scope=\"col\">MFU</th>"
      "<th scope=\"col\">HFU</th><th scope=\"col\">bubbles</th>"
      "<th scope=\"col\">peak memory GiB</th></tr></thead><tbody>\n";
  for (const ReportRun& r : runs) {
    const auto alike = [&](const ReportRun& other) { return same_work(other, r); };
    const bool alone = runs.size() > 1 && std::ranges::count_if(runs, alike) == 1;
    const auto first = std::ranges::find_if(runs, alike);
    out += summary_row(r.result, alone ? nullptr : &first->result, &r.result == best);
  }
  return out + "</tbody></table></div></section>\n";
}

std::string time_section(std::span<const ReportRun> runs) {
  std::string out =
      "<section id=\"time\"><h2>Where time goes</h2>\n<p>Of a step, mean over GPUs. Every idle "
      "nanosecond has one cause.</p>\n<div class=\"bars\">\n";
  for (const ReportRun& r : runs) {
    const results::RunResult& run = r.result;
    const double busy = 1 - results::bubble_share(run);
    std::string bar = bar_part({"busy", 0x0072b2, plot::Fill::solid, false, true}, "busy", busy);
    std::string words = fmt::format("busy {:.1f} %", 100 * busy);
    for (std::size_t k = 0; k < kBubbleKinds; ++k) {
      const auto kind = static_cast<BubbleKind>(k);
      const std::string name(name_of(kind));
      bar += bar_part(charts::span_looks()[charts::look_of(kind)], name, run.bubble_shares[k]);
      if (run.bubble_shares[k] > 0.0005)
        words += fmt::format(", {} {:.1f} %", name, 100 * run.bubble_shares[k]);
    }
    out += fmt::format(
        "<div>{}</div><div><div class=\"bar\" aria-hidden=\"true\">{}</div>"
        "<div class=\"soft\">{}</div></div>\n",
        label(run), bar, words);
  }
  return out + "</div></section>\n";
}

std::string timeline_section() {
  return "<section id=\"timeline-section\"><h2>Timeline</h2>\n"
         "<div class=\"tools\"><label>Strategy <select id=\"run\"></select></label>"
         "<label hidden>Step <select id=\"step\"></select></label>"
         "<button id=\"zoom-in\" type=\"button\">Zoom in</button>"
         "<button id=\"zoom-out\" type=\"button\">Zoom out</button>"
         "<button id=\"zoom-all\" type=\"button\">All</button>"
         "<label>Search <input id=\"search\" type=\"search\" placeholder=\"attention, tp, mb 3\" "
         "autocomplete=\"off\"></label><span id=\"found\" role=\"status\"></span></div>\n"
         "<canvas id=\"timeline\" tabindex=\"0\" role=\"application\" "
         "aria-describedby=\"keys\"></canvas>\n"
         "<div class=\"tools\"><span id=\"range\" class=\"soft\"></span>"
         "<span id=\"hidden\" class=\"soft\"></span></div>\n"
         "<p id=\"details\" role=\"status\" aria-live=\"polite\"></p>\n"
         "<ul id=\"legend\" aria-label=\"Legend\"></ul>\n"
         "<p id=\"keys\" class=\"soft\">Drag pans, Ctrl + wheel zooms (the wheel alone once the "
         "timeline has the focus), double click zooms in, click selects. Keys: left and right pan, "
         "+ and - zoom, 0 shows all, comma and full stop select the span before and after, up and "
         "down other streams; Enter in the search, n and p go to the next and previous match.</p>"
         "\n</section>\n";
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
      std::vector<results::RunResult> kept;
      for (const results::RunResult& run : group)
        if (!run.spans.empty()) kept.push_back(run);
      out += fmt::format("<h3>{}</h3>\n", html(name));
      if (!kept.empty())
        out += figure(charts::timeline_chart(kept, {}), "Timeline of " + name,
                      "The first kept step, with device lanes.");
      out += figure(charts::bubbles_chart(group), "Bubbles of " + name + " by stage and kind",
                    "Bubbles by stage and kind; the percentage is of the step.");
      if (!kept.empty())
        out += figure(charts::memory_chart(kept, {}), "Memory of " + name + " over a step",
                      "Memory of a GPU of each stage, with what it has.");
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
        html(run.cluster), run.tp, run.pp, run.vpp > 1 ? fmt::format("vpp {}, ", run.vpp) : "",
        run.dp, run.zero_stage, run.global_batch_size, run.micro_batches, run.micro_batch_size,
        html(run.granularity));
    if (!run.facts.empty()) out += "<dl>";
    for (const Fact& fact : run.facts)
      out += fmt::format("<dt>{}</dt><dd>{}</dd>", html(fact.key), html(fact.text));
    if (!run.facts.empty()) out += "</dl>\n";
    out +=
        "<div class=\"wide\"><table class=\"plan\"><thead><tr><th scope=\"col\">stage</th>"
        "<th scope=\"col\" class=\"word\">layers</th><th scope=\"col\">forward ms</th>"
        "<th scope=\"col\">backward ms</th><th scope=\"col\">busy</th>"
        "<th scope=\"col\">weights GiB</th><th scope=\"col\">gradients</th>"
        "<th scope=\"col\">optimizer</th><th scope=\"col\">activations</th>"
        "<th scope=\"col\">reserve</th><th scope=\"col\">sum</th></tr></thead><tbody>\n";
    for (const results::StageRow& s : run.stages) {
      out += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"word\">{}</td>", s.stage,
                         html(s.layers));
      out += cell(fmt::format("{:.1f}", s.forward.value * 1e3)) +
             cell(fmt::format("{:.1f}", s.backward.value * 1e3)) +
             cell(run.iteration.value > 0 ? fmt::format("{:.1f} %", 100 * (s.busy / run.iteration))
                                          : "");
      for (const Bytes b :
           {s.weights, s.gradients, s.optimizer, s.peak_activations, s.reserve, s.peak_memory})
        out += cell(fmt::format("{:.1f}", gib(b)));
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
  }
  return out + "</section>\n";
}

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
  for (const ReportRun& r : runs) {
    const results::RunResult& run = r.result;
    const std::string file = html(run.name + ".toml");
    out += fmt::format("<h3>{}</h3>\n<pre>mllmsim run {}</pre>\n", label(run), file);
    out += fmt::format(
        "<p><a download=\"{}\" href=\"data:text/plain;charset=utf-8;base64,{}\">{}</a></p>\n"
        "<details><summary>Show it</summary><pre>{}</pre></details>\n",
        file, base64(run.scenario_text), file, html(run.scenario_text));
    out += "<dl>";
    for (const auto& [key, value] :
         {std::pair<const char*, std::string>{"scenario", run.scenario_hash},
          {"calibration", run.calibration_hash.empty() ? "none" : run.calibration_hash},
          {"seed", std::to_string(run.seed)},
          {"version", r.version},
          {"read from", r.directory}})
      out += fmt::format("<dt>{}</dt><dd>{}</dd>", key, html(value));
    out += "</dl>\n";
  }
  return out + "</section>\n";
}

}  // namespace mllmsim::report
