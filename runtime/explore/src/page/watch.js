/** Loads the page again when the server has another state of the files. */
async function watch() {
  let known = null;
  for (;;) {
    try {
      const stamp = await (await fetch("/stamp")).text();
      if (known !== null && stamp !== known) location.reload();
      known = stamp;
    } catch { /* The server is gone, perhaps to come again. */ }
    await new Promise((after) => setTimeout(after, 700));
  }
}
