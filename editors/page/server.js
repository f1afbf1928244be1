/** Requests to the server that the page is from. */
export const setup = JSON.parse(document.getElementById("setup").textContent);

/** The answer to a request. A page of another site cannot set this header. */
export async function ask(path, body) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const answer = await fetch(path, { method: "POST", headers: { "X-Rtc-Token": setup.token, "Content-Type": "application/json" }, body: text });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}
