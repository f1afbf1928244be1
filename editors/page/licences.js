/** The licences of the packages in a bundle of esbuild, by its metafile. */
import { readFileSync, readdirSync } from "node:fs";

const meta = JSON.parse(readFileSync(process.argv[2], "utf8"));
const packages = new Set(Object.keys(meta.inputs).map((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean));
for (const name of [...packages].sort()) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[sc]e/i.test(each));
  if (!file) throw new Error(`${name} has no licence file`);
  console.log(`${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n\n${"-".repeat(80)}\n`);
}
